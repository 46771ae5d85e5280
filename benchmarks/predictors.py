"""Does the probe foretell what an architecture comes to, better than trivial predictors do?

    python -m benchmarks.predictors [--out benchmarks/results] [--draw]

Reads `benchmarks/tables/predictors.csv` (`benchmarks.predictor_rows` makes it from a store), and
prints a table for each study with at least eight architectures: Kendall's tau and Spearman's rho
with the trained result, the cross-validated R^2 added to the cheap predictors, and tau between
architectures with the same number of each mixer; and whether the tables agree. Trains nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.predictor_analysis import (
    PROBES,
    Estimate,
    Found,
    Table,
    agreement,
    analyse,
    ceiling,
    cheap_r2,
    n_pairs_within,
    results_of,
    tabulate,
)
from benchmarks.predictor_rows import TABLE, read_table

MIN_ARCHITECTURES = 8
NAMES = {
    "probe_init": "probe, as initialised",
    "probe_first": "probe, at the first reading",
    "probe_final": "probe, after training",
    "selection_first": "loss at the first reading",
    "n_layers": "depth",
    "flops": "FLOPs",
    "reach": "static reach",
}


def with_ends(found: Estimate | None, digits: int = 2) -> str:
    """A number with its interval."""
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return f"{found.value:+.{digits}f}"
    return f"{found.value:+.{digits}f} [{found.low:+.{digits}f}, {found.high:+.{digits}f}]"


def report(table: Table, rows: Sequence[dict[str, Any]], found: Sequence[Found]) -> str:
    """One study's section."""
    top = ceiling(table)
    seeds = sorted({row["seed"] for row in rows}, key=int)
    first = rows[0]
    base = cheap_r2(table)
    lines = [
        f"## {table.study}",
        "",
        f"{len(table.result)} architectures, {len(rows)} trainings of {first['steps']} steps "
        f"(seeds {', '.join(seeds)}; learning rate {first['learning_rate']}), foretold: loss on "
        f"the {table.target} split; first reading at step {first['first_step']}.",
    ]
    if top is not None:
        lines.append(
            f"Noise ceiling: half of the seeds foretells the other half with rho "
            f"{top.rho.value:.3f} ({top.rho.low:.3f} to {top.rho.high:.3f} over the splits), over "
            f"the {top.n_architectures} architectures that have the same seeds."
        )
    lines += [
        f"Cheap predictors together: cross-validated R^2 {base:+.2f}. "
        f"Pairs with the same number of each mixer: {n_pairs_within(table)}.",
        "",
        "| predictor | tau | rho | abs(rho) against the probe's at initialisation | added R^2 | "
        "tau within equal counts (p) |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        within = "" if one.within is None else f"{one.within:+.2f} ({one.p_within:.3f})"
        lines.append(
            f"| {NAMES.get(one.name, one.name)} | {with_ends(one.tau)} | {with_ends(one.rho)} | "
            f"{with_ends(one.against_probe)} | {with_ends(one.added)} | {within} |"
        )
    return "\n".join([*lines, "", verdict(found)])


def verdict(found: Sequence[Found]) -> str:
    """What the probe is worth here, in a sentence or two."""
    by_name = {one.name: one for one in found}
    said = []
    for name in PROBES[:1] + PROBES[2:]:
        if name not in by_name:
            continue
        probe = by_name[name]
        others = [one for one in found if one.kind == "cheap"]
        better = [
            NAMES.get(one.name, one.name)
            for one in others
            if abs(one.rho.value) >= abs(probe.rho.value)
        ]
        what = NAMES[name].removeprefix("probe, ")
        said.append(
            f"The probe {what} does no better than {', '.join(better)}."
            if better
            else f"The probe {what} does better than every cheap predictor here."
        )
    return " ".join(said)


def agreements(tables: Sequence[Table]) -> str:
    """How alike the tables order the architectures that they share."""
    lines = [
        "## Between the tables",
        "",
        "Do two tables order the architectures alike that are in both? Rank correlation of their "
        f"results, where they share at least {MIN_ARCHITECTURES}.",
        "",
        "| tables | architectures | tau | rho |",
        "|---|---|---|---|",
    ]
    for first, second in combinations(tables, 2):
        if len(results_of(first).keys() & results_of(second).keys()) >= MIN_ARCHITECTURES:
            found = agreement(first, second)
            lines.append(
                f"| {' and '.join(found.studies)} | {found.n_architectures} | "
                f"{with_ends(found.tau)} | {with_ends(found.rho)} |"
            )
    return "\n".join(lines)


def draw(tables: Sequence[tuple[Table, list[Found]]], path: Path) -> None:
    """Picture of rho with its interval, one panel a study."""
    from plotly.subplots import make_subplots

    from search.figures.files import write_image
    from search.figures.style import FONT, MIXER_COLOURS

    kinds = ("probe", "early loss", "cheap", "zero-cost")
    places = {one.name: kinds.index(one.kind) for _, found in tables for one in found}
    order = sorted(places, key=lambda name: places[name])
    figure = make_subplots(
        1,
        len(tables),
        subplot_titles=[table.study for table, _ in tables],
        shared_yaxes=True,
        horizontal_spacing=0.02,
    )
    for column, (_, found) in enumerate(tables, start=1):
        for place, kind in enumerate(kinds):
            members = [one for one in found if one.kind == kind]
            figure.add_scatter(
                x=[one.rho.value for one in members],
                y=[NAMES.get(one.name, one.name) for one in members],
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [(one.rho.high or one.rho.value) - one.rho.value for one in members],
                    "arrayminus": [
                        one.rho.value - (one.rho.low or one.rho.value) for one in members
                    ],
                },
                mode="markers",
                marker={"color": MIXER_COLOURS[place], "size": 9},
                name=kind,
                legendgroup=kind,
                showlegend=column == 1,
                row=1,
                col=column,
            )
    figure.update_yaxes(
        autorange="reversed",
        automargin=True,
        categoryorder="array",
        categoryarray=[NAMES.get(name, name) for name in order],
    )
    figure.update_xaxes(
        range=[-1.1, 1.1], tickvals=[-1, -0.5, 0, 0.5, 1], tickangle=0, title_text="Spearman's rho"
    )
    figure.update_layout(
        template="plotly_white",
        title={"text": "What foretells the loss after training", "x": 0.01},
        width=240 + 230 * len(tables),
        height=600,
        font=FONT,
        legend={"orientation": "h", "y": -0.12},
    )
    write_image(figure, path, scale=1.5)


def main() -> None:
    """Prints, writes, draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--out", type=Path, help="folder for predictors.md")
    parser.add_argument("--draw", action="store_true", help="with --out: predictors.png too")
    options = parser.parse_args()
    by_study: dict[str, list[dict[str, Any]]] = {}
    for row in read_table(options.table):
        by_study.setdefault(row["study"], []).append(row)
    tables = []
    parts = ["# What foretells the loss after training", "", "`python -m benchmarks.predictors`"]
    for study, rows in by_study.items():
        table = tabulate(study, rows)
        if len(table.result) >= MIN_ARCHITECTURES:
            found = analyse(table)
            tables.append((table, found))
            parts += ["", report(table, rows, found)]
    parts += ["", agreements([table for table, _ in tables])]
    text = "\n".join(parts)
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "predictors.md").write_text(text + "\n", encoding="utf-8")
        if options.draw:
            draw(tables, options.out / "predictors.png")


if __name__ == "__main__":
    main()
