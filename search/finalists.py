"""Which architectures are confirmed with fresh seeds on the test split, and which one is next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.baselines import Baseline
from search.rows import TrialRow
from search.space import Labels, Space

if TYPE_CHECKING:
    from search.study import StudySpec

REFERENCE_ROLES = ("reference", "reference_learned_positions")


@dataclass(frozen=True)
class Finalist:
    """An architecture to confirm: its role (pick, reference, shorter, rival) and layers."""

    role: str
    labels: Labels


def explored(rows: Iterable[TrialRow], objective: str) -> list[TrialRow]:
    """Returns the finished trials with the study's own seed: what finalists are chosen from."""
    return [
        row
        for row in rows
        if row.state == "completed" and row.seed_index == 0 and objective in row.selection
    ]


def finalists(
    study: StudySpec, space: Space, listed: Sequence[Baseline], rows: Iterable[TrialRow]
) -> tuple[Finalist, ...]:
    """Chooses the finalists from the rows, in the order in which they take turns.

    The pick is the best of full depth, the reference the better of the reference stack with and
    without rotary positions, the shorter model the best of fewer layers. The rival is the best
    pure stack of another kind than the reference when the pick is a hybrid, else the best hybrid.
    Roles without a finished trial are absent; an architecture appears once.
    """
    objective, sign = study.objective, 1.0 if study.direction == "minimize" else -1.0
    best_first = sorted(
        explored(rows, objective), key=lambda row: (sign * row.selection[objective], row.number)
    )
    by_role = {baseline.role: baseline.labels for baseline in listed}
    references = [by_role[role] for role in REFERENCE_ROLES if role in by_role]
    depth = study.encoder.n_layers
    full = [
        row.mixers
        for row in best_first
        if row.n_layers == depth and (row.mixers in space or row.mixers not in references[1:])
    ]
    pick = full[0] if full else None
    tried = [row.mixers for row in best_first]
    found = {
        "pick": pick,
        "reference": next((labels for labels in tried if labels in references), None),
        "shorter": next((row.mixers for row in best_first if row.n_layers < depth), None),
        "rival": _rival(pick, full, references),
    }
    chosen: dict[Labels, Finalist] = {}
    for role, labels in found.items():
        if labels is not None and labels not in chosen:
            chosen[labels] = Finalist(role, labels)
    return tuple(chosen.values())


def _rival(
    pick: Labels | None, full: Sequence[Labels], references: Sequence[Labels]
) -> Labels | None:
    if pick is None:
        return None
    wants_pure = len(set(pick)) > 1
    return next(
        (
            labels
            for labels in full
            if (len(set(labels)) == 1) == wants_pure and labels not in references
        ),
        None,
    )


def next_finalist(
    chosen: Sequence[Finalist], rows: Iterable[TrialRow]
) -> tuple[Finalist, int] | None:
    """Returns whose turn it is and the seed index of that repeat, or None without finalists.

    The finalist with the fewest repeats is next, the earlier one among equals. Repeats count
    whatever became of them, so a finalist that always fails does not hold up the others.
    """
    if not chosen:
        return None
    repeats = Counter(row.mixers for row in rows if row.seed_index > 0)
    finalist = min(chosen, key=lambda f: repeats[f.labels])
    used = [row.seed_index for row in rows if row.mixers == finalist.labels]
    return finalist, max(used, default=0) + 1
