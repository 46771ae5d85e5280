"""A trial's page: what ran, what came out, what it cost, and the proof of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from search.cli.numbers import decimals, size_in_bytes
from search.figures.curves import curves_figure
from search.figures.shown import PageFigure, page_figure
from search.wording import ABSENT, role_words, scaled, time_text
from service.deps import Reader, StoreDep
from service.listing import thinned
from service.pages.study import frame
from service.pages.tables import Column, Table, Value, cell, study_href
from service.pages.templating import render
from service.routes.results import show_trial
from service.schemas import NumberPath, StudyPath
from service.studies import find

router = APIRouter(include_in_schema=False)
MOST_POINTS = 300
LIVE_STATES = ("proposed", "queued", "running")
PROBE_WORDS = (
    "Whether the network tells contexts apart, by its outputs at tokens that are equal in both. "
    "`one_edit`: contexts that differ in one token; `half_edits`: in half of them; "
    "`transposition`: two are swapped. `p_sep`: share of outputs that are separated; `borderline`: "
    "share hardly so; `d_ctx`: 0 where no context is told apart, 1 where all are; `gap`: distance "
    "of two outputs (least, 1 % point, median; two at random are about 1 apart). `probe` is "
    "`one_edit.gap_median`; `positional`: 1 where the order of tokens counts; where it does not, "
    "`equality_error`: how much outputs differ that should be equal."
)


@router.get("/studies/{study}/trials/{number}")
def trial_page(study: StudyPath, number: NumberPath, store: StoreDep, user: Reader) -> HTMLResponse:
    """All that is known of one trial."""
    row = find(store, study)
    trial = show_trial(study, number, store, user).model_dump()
    source = None if trial["reused_from"] is None else store.trial(trial["reused_from"])
    return render(
        "trial.html",
        user,
        "studies",
        **frame(store, row, user, "trials"),
        trial=trial,
        facts_of_trial=_facts(trial, source),
        tables=[table for table in _tables(trial) if table.rows],
        figures=_curves(trial),
        influence=_influence(trial["proof"]),
        is_live=trial["state"] in LIVE_STATES,
        tracebacks=[a for a in trial["attempts"] if a.get("traceback")],
        environment=sorted((k, v) for k, v in trial["environment"].items() if v not in (None, "")),
    )


def _facts(
    trial: Mapping[str, Any], source: Mapping[str, Any] | None
) -> tuple[tuple[str, Value], ...]:
    trained = ""
    if trial["steps"] is not None and source is None:
        trained = f"{trial['steps']} steps in {time_text(trial['seconds'])}"
    reused: Value = ""
    if source is not None:
        name = f"trial {source['number']} of {source['study']}"
        reused = cell(name, href=study_href(source["study"], 0, "trials", str(source["number"])))
    architecture = trial["arch_id"] and cell(
        trial["arch_id"],
        href=study_href(trial["study"], 0, "trials", arch_id=trial["arch_id"]),
    )
    found: tuple[tuple[str, Value], ...] = (
        ("phase", f"{trial['phase']} {role_words(trial['role'] or '')}".strip()),
        ("layers", cell(trial["code"], kind="stack", title=trial["notation"] or "")),
        ("seed", "" if trial["seed"] is None else f"{trial['seed']} (run {trial['seed_index']})"),
        ("trained", trained),
        ("reused from", reused),
        ("worker", trial["worker"] or ""),
        ("created", cell(trial["created_at"], kind="moment")),
        ("ended", cell(trial["finished_at"], kind="moment") if trial["finished_at"] else ""),
        ("architecture", architecture or ""),
        ("recipe", _recipe(trial["recipe"])),
    )
    return tuple((name, value) for name, value in found if value)


def _recipe(text: str) -> str:
    return "" if text in ("{}", "") else f"changed: {text}"


def _tables(trial: Mapping[str, Any]) -> list[Table]:
    return [_evaluations(trial), _costs(trial["costs"]), _probes(trial["probes"])]


def _evaluations(trial: Mapping[str, Any]) -> Table:
    splits: Mapping[str, Mapping[str, float]] = trial["evaluations"]
    names = sorted({name for metrics in splits.values() for name in metrics})
    names.sort(key=lambda name: name != trial["objective"])
    columns = (Column("split"), *(Column(name, right=True) for name in names))
    rows = tuple(
        (split, *(decimals(splits[split].get(name)) for name in names)) for split in sorted(splits)
    )
    return Table("Evaluations after the last step", columns, rows, fits=True)


def _costs(costs: Mapping[str, Any] | None) -> Table:
    columns = (Column("cost"), Column("median", right=True), Column("10 to 90 %"), Column("of"))
    if not costs:
        return Table("Costs", columns)
    where = f"{costs['device'] or 'unknown device'}, {costs['dtype'] or 'unknown format'}"
    rows: list[tuple[Value, ...]] = [
        ("parameters", scaled(costs["params"]), "", "counted"),
        ("forward pass", f"{scaled(costs['flops'])} FLOPs", "", "one sequence, counted"),
    ]
    for label, name in (("training step", "step"), ("forward pass", "latency")):
        if costs[f"{name}_s"] is not None:
            low, high = time_text(costs[f"{name}_s_low"]), time_text(costs[f"{name}_s_high"])
            size = f"batch {costs[f'{name}_batch_size']} of {costs['seq_len']} tokens"
            of = f"{costs[f'{name}_n']} timed; {size}; {where}"
            rows.append((label, time_text(costs[f"{name}_s"]), f"{low} to {high}", of))
    rows.append(("peak memory", size_in_bytes(costs["peak_memory_bytes"]), "", "the whole trial"))
    return Table("Costs", columns, tuple(rows), fits=True)


def _probes(probes: Mapping[str, Mapping[str, float | None]]) -> Table:
    moments = [moment for moment in ("init", "final") if moment in probes]
    names = sorted({name for moment in moments for name in probes[moment]})
    names.sort(key=lambda name: name != "probe")
    words = {"init": "before training", "final": "after training"}
    columns = (Column("reading"), *(Column(words[moment], right=True) for moment in moments))
    rows = tuple(
        (name, *(_significant(probes[moment].get(name)) for moment in moments)) for name in names
    )
    return Table("Probe of contextual mapping", columns, rows, fits=True, about=PROBE_WORDS)


def _significant(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4g}"


def _curves(trial: Mapping[str, Any]) -> list[PageFigure]:
    """A figure for each metric, of all its splits; the objective first."""
    metrics: dict[str, dict[str, Sequence[tuple[float, float]]]] = {}
    for name, points in trial["curves"].items():
        split, _, metric = name.partition(".")
        curve = [(int(step), float(value)) for step, value in points]
        metrics.setdefault(metric, {})[split] = thinned(curve, MOST_POINTS)
    order = sorted(metrics, key=lambda metric: (metric != trial["objective"], metric))
    return [
        page_figure(
            f"curve-{place}",
            curves_figure(metrics[metric], metric, metric),
            f"{metric} while training",
            "One line a split of the data.",
        )
        for place, metric in enumerate(order)
    ]


def _influence(proof: Mapping[str, Any] | None) -> Table | None:
    if not proof or not proof["layers"]:
        return None
    columns = (
        Column("layer", right=True),
        Column("class that ran"),
        Column("from"),
        Column("pairs of tokens of which one moves the other", right=True),
    )
    rows = tuple(
        (
            layer,
            found["qualified_class"],
            f"{found['distribution']} {found['version']}",
            _pairs(found["influence"]),
        )
        for layer, found in enumerate(proof["layers"])
    )
    return Table("Mixers that really ran", columns, rows, fits=True)


def _pairs(pattern: Sequence[str]) -> str:
    moved = sum(row.count("1") for row in pattern)
    return f"{moved} of {len(pattern) ** 2}"
