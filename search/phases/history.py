"""Rows of the store as a strategy sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from search.rows import TrialRow
from search.spec.limits import Limit, excesses
from search.spec.measures import Measure
from search.spec.space import Labels, Space
from search.strategies.base import History, PastState, PastTrial

PAST_STATES: Mapping[str, PastState] = {
    "completed": "complete",
    "diverged": "pruned",
    "pruned": "pruned",
    "failed": "failed",
    "stopped": "failed",
    "queued": "running",
    "running": "running",
}

SeenRows = dict[int, tuple[TrialRow, PastTrial | None]]
"""By a trial's id: its row, and what a strategy learns from it."""


def history_of(
    rows: Iterable[TrialRow],
    space: Space,
    *,
    measures: Sequence[Measure],
    limits: Sequence[Limit] = (),
    study_attrs: Mapping[str, Any],
    seen: SeenRows | None = None,
) -> History:
    """Returns what a strategy may learn from: first seeds of architectures of the space.

    Baselines inside the space are among them. Repeats with fresh seeds are not: they were made
    for finalists only, and a sampler would count a finalist's luck several times. A diverged trial
    counts as bad without a value, one that ended at a rung with its value there (where there is one
    objective), as Optuna has it for pruned trials. A failed one counts as nothing but a place
    already visited; so does one that lacks an objective or a bounded value. Trials of another
    recipe are not comparable, but what ran out of memory in one would do so in any.

    Args:
        rows: The study's trials.
        space: The present space.
        measures: The objectives.
        limits: Those that only training shows; the space keeps the others.
        study_attrs: The sampler's notes about the study.
        seen: What earlier calls with the same space, objectives and limits made of their rows;
            rows that are still the same objects are not looked at again.
    """
    rows = list(rows)
    seen = {} if seen is None else seen
    past, taken = [], set(too_large(rows))
    for row in rows:
        if row.seed_index > 0 or not row.mixers or row.recipe:
            continue
        taken.add(row.mixers)
        known = seen.get(row.id)
        if known is None or known[0] is not row:
            known = seen[row.id] = row, _past(row, space, measures, limits)
        if known[1] is not None:
            past.append(known[1])
    past.sort(key=lambda trial: trial.number)
    directions = tuple(measure.direction for measure in measures)
    return History(tuple(past), frozenset(taken), study_attrs, directions)


def _past(
    row: TrialRow, space: Space, measures: Sequence[Measure], limits: Sequence[Limit]
) -> PastTrial | None:
    state = PAST_STATES.get(row.state)
    if state is None or row.mixers not in space:
        return None
    trial = PastTrial(row.number, state, row.mixers, attrs=row.sampler_attrs)
    if row.state == "pruned" and len(measures) == 1:
        value = measures[0].value(row)
        return trial if value is None else replace(trial, at_rung=(row.steps or 0, value))
    if state != "complete":
        return trial
    values = tuple(measure.value(row) for measure in measures)
    known = tuple(value for value in values if value is not None)
    over = excesses(row, limits)
    if len(known) < len(values) or over is None:
        return replace(trial, state="failed")
    return replace(trial, values=known, excesses=over)


def trained_labels(rows: Iterable[TrialRow]) -> frozenset[Labels]:
    """Returns the architectures that need no (more) trial with the study's own seed and recipe.

    They have one, or ran out of memory in another.
    """
    return frozenset(
        row.mixers
        for row in rows
        if row.mixers and ((row.seed_index == 0 and not row.recipe) or row.cause == "out_of_memory")
    )


def too_large(rows: Iterable[TrialRow]) -> frozenset[Labels]:
    """Returns the architectures that ran out of memory: they would do so with any seed or recipe.

    Sizes and batches are the study's, so that this says nothing about another study.
    """
    return frozenset(row.mixers for row in rows if row.cause == "out_of_memory")
