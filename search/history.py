"""Rows of the store as a strategy sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from search.rows import TrialRow
from search.space import Labels, Space
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


def history_of(
    rows: Iterable[TrialRow],
    space: Space,
    *,
    objective: str,
    direction: Literal["minimize", "maximize"],
    study_attrs: Mapping[str, Any],
) -> History:
    """Returns what a strategy may learn from: first seeds of architectures of the space.

    Baselines inside the space are among them. Repeats with fresh seeds are not: they were made
    for finalists only, and a sampler would count a finalist's luck several times. A diverged trial
    counts as bad without a value, a failed one as nothing but a place already visited.
    """
    past, taken = [], set()
    for row in rows:
        if row.seed_index > 0 or not row.mixers:
            continue
        taken.add(row.mixers)
        state = PAST_STATES.get(row.state)
        if state is None or row.mixers not in space:
            continue
        value = row.selection.get(objective)
        if state == "complete" and value is None:
            state = "failed"
        past.append(PastTrial(row.number, state, row.mixers, value, row.sampler_attrs))
    past.sort(key=lambda trial: trial.number)
    return History(tuple(past), frozenset(taken), study_attrs, direction)


def trained_labels(rows: Iterable[TrialRow]) -> frozenset[Labels]:
    """Returns the architectures that have a row with the study's own seed, whatever its state."""
    return frozenset(row.mixers for row in rows if row.mixers and row.seed_index == 0)
