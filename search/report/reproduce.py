"""How to repeat a study: data, seeds, versions, commands and the study's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Section

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.report.about import About

TITLE = "How to reproduce"
LEAD = (
    "Runs repeat bit for bit on the same machine with the same versions and number of threads; "
    "elsewhere they repeat within the noise."
)
OF_THE_TRIAL = {"seed"}  # facts of one trial, not of the study
MOST_SEEDS = 8


def sections(answer: Answer, about: About) -> list[Section]:
    """The facts, the commands and the study's file."""
    from search.spec.study_file import yaml_file

    total = sum(answer.spent.by_phase.values())
    parts = [Section("Made with", ("fact", "value"), _facts(about))]
    is_own = about.spec.get("task", {}).get("kind") == "objective"
    version = about.facts.get("mixsearch")
    name = about.argument + about.store_option
    run = (
        "# call search.run(objective=...) from your script"
        if is_own
        else f"search run study.yaml --name {about.argument} --budget {max(1, total)}"
        f"{'' if about.is_served else about.store_option}"
    )
    install = [f"pip install mixsearch=={version}"] if version else []
    commands = [*install, run, f"search report {name} --out report.html", f"search show {name}"]
    parts.append(Section("Commands", code="\n".join(commands)))
    if about.spec:
        parts.append(Section("study.yaml", code=yaml_file(about.spec).rstrip()))
    return parts


def _facts(about: About) -> tuple[tuple[str, str], ...]:
    seeds = [str(seed) for seed in about.seeds[:MOST_SEEDS]]
    if len(about.seeds) > MOST_SEEDS:
        seeds.append(f"and {len(about.seeds) - MOST_SEEDS} more")
    found = {
        "study": about.study,
        "store": about.shown_store,
        "study seed": str(about.spec.get("seed", "")),
        "training seeds": ", ".join(seeds),
        "data fingerprint": about.fingerprint,
        **{name: fact for name, fact in about.facts.items() if name not in OF_THE_TRIAL},
    }
    return tuple((name.replace("_", " "), value) for name, value in found.items() if value)
