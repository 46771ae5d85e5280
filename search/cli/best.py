"""`search best`: the architecture that a study picks."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.numbers import decimals
from search.cli.options import (
    DEFAULT_STORE,
    JsonOption,
    ServerOption,
    StoreOption,
    StudyArgument,
)
from search.cli.output import note, print_json, write

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.leaders import Leader
    from search.rows import TrialRow


def best(
    study: StudyArgument = None,
    store: StoreOption = DEFAULT_STORE,
    server: ServerOption = None,
    spec: Annotated[
        bool,
        typer.Option("--spec", help="Print its encoder spec alone, as `search probe` reads it."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the architecture that a study picks, and how it stands against its rivals."""
    from search.cli.answering import answer_of, require_finished
    from search.cli.opening import find_study, open_reader

    with open_reader(store, server) as opened:
        found = find_study(opened, study)
        rows = opened.rows(found.name, documents=True)
        answer = answer_of(opened, found, rows)
        require_finished(answer, found)
        leader = next((row for row in answer.leaders if row.arch_id == answer.pick), None)
        leader = leader or answer.leaders[0]
        trials = [row for row in rows if row.arch_id == leader.arch_id]
        encoder = opened.trial(trials[0].id)["spec"]
    if spec:
        print_json(encoder)
    elif json:
        print_json(document(answer, leader, trials, encoder))
    else:
        write(text(answer, leader, trials))
        note(f"`search best {found.name} --spec` prints its encoder spec")


def document(
    answer: "Answer", leader: "Leader", trials: "list[TrialRow]", encoder: Any
) -> dict[str, Any]:
    """The pick for programs."""
    plain = answer.to_dict()
    return {
        **next(row for row in plain["leaders"] if row["arch_id"] == leader.arch_id),
        "trials": [row.number for row in trials],
        "contrasts": [
            contrast
            for contrast in plain["contrasts"]
            if contrast["candidate_id"] == leader.arch_id
        ],
        "spec": encoder,
    }


def text(answer: "Answer", leader: "Leader", trials: "list[TrialRow]") -> str:
    """The pick for people."""
    from search.wording import OTHERS, difference_text, scaled, time_text

    question = answer.question
    lines = [
        ("pick", f"{leader.code}  {leader.notation}"),
        ("architecture", leader.arch_id),
        (
            question.objective,
            f"{decimals(leader.selection)} on selection ({_runs(leader.n_selection)})",
        ),
    ]
    if leader.test is not None:
        spread = f" +- {decimals(leader.test_sd)} SD" if leader.test_sd is not None else ""
        lines.append(("", f"{decimals(leader.test)}{spread} on test ({_runs(leader.n_test)})"))
    lines += [
        (name, f"{decimals(value)} on the selection split")
        for name, value in leader.metrics.items()
    ]
    lines += [
        ("parameters", scaled(leader.params)),
        ("forward", f"{scaled(leader.flops)} FLOPs per sequence"),
        ("latency", time_text(leader.latency_s)),
        ("trials", ", ".join(str(row.number) for row in trials)),
    ]
    for contrast in answer.contrasts:
        if contrast.candidate_id == leader.arch_id:
            difference = difference_text(contrast.interval, question)
            rival = OTHERS[contrast.against]
            lines.append((f"- {rival}", f"{difference}  {contrast.verdict.text}"))
    return "\n".join(f"{label:<16}{value}" for label, value in lines)


def _runs(n: int) -> str:
    return f"{n} run{'' if n == 1 else 's'}"
