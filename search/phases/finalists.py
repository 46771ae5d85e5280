"""Which architectures are confirmed with fresh seeds on the test split, and which one is next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING

from search.rows import TrialRow
from search.spec.baselines import Baseline
from search.spec.limits import are_within, limits_of
from search.spec.space import Labels, Space

if TYPE_CHECKING:
    from search.spec.study import StudySpec

REFERENCE_ROLES = ("reference", "reference_learned_positions")
FINALIST_ROLES = ("pick", "reference", "shorter", "rival")
FIRST_REPEATS = 4
OTHER_REPEATS = 3


@dataclass(frozen=True)
class Finalist:
    """An architecture to confirm: its role (pick, reference, shorter, rival) and layers."""

    role: str
    labels: Labels


def explored(rows: Iterable[TrialRow], objective: str) -> list[TrialRow]:
    """Returns the finished trials of the study's seed and recipe: finalists come from these."""
    return [
        row
        for row in rows
        if row.state == "completed"
        and row.seed_index == 0
        and not row.recipe
        and objective in row.selection
    ]


def finalists(
    study: StudySpec, space: Space, listed: Sequence[Baseline], rows: Iterable[TrialRow]
) -> tuple[Finalist, ...]:
    """Chooses the finalists from the rows, in the order in which they take turns.

    The pick is the best of full depth, the reference the better of the reference stack with and
    without rotary positions, the shorter model the best of fewer layers. The rival is the best
    pure stack of another kind than the reference when the pick is a hybrid, else the best hybrid.
    Roles without a finished trial are absent; an architecture appears once. Where the study has
    limits, all but the reference, which is what they are compared with, keep them.
    """
    objective, sign = study.objective, 1.0 if study.direction == "minimize" else -1.0
    best_first = sorted(
        explored(rows, objective), key=lambda row: (sign * row.selection[objective], row.number)
    )
    by_role = {baseline.role: baseline.labels for baseline in listed}
    references = [by_role[role] for role in REFERENCE_ROLES if role in by_role]
    depth, limits = study.encoder.n_layers, limits_of(study)
    within = [row for row in best_first if are_within([row], limits)]
    full = [
        row.mixers
        for row in within
        if row.n_layers == depth and (row.mixers in space or row.mixers not in references[1:])
    ]
    pick = full[0] if full else None
    tried = [row.mixers for row in best_first]
    found = {
        "pick": pick,
        "reference": next((labels for labels in tried if labels in references), None),
        "shorter": next((row.mixers for row in within if row.n_layers < depth), None),
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


def turns(chosen: Sequence[Finalist], rows: Sequence[TrialRow]) -> Iterator[tuple[Finalist, int]]:
    """Yields whose turn it is and the seed index of that repeat, without end but for no finalists.

    A contrast with one run a side says nothing, with two next to nothing, so contrasts are served
    one after the other: first the pick and the reference up to `FIRST_REPEATS` each, then each
    other finalist up to `OTHER_REPEATS`; then the finalist with the fewest repeats, the earlier one
    among equals. Repeats count whatever became of them, so a finalist that always fails does not
    hold up the others. A repeat has the lowest seed index that its finalist has not had.
    """
    used = {(row.mixers, row.seed_index) for row in rows if not row.recipe}
    repeats = Counter(row.mixers for row in rows if row.seed_index > 0 and not row.recipe)
    while chosen:
        finalist = _served_next(in_order(chosen), repeats)
        labels = finalist.labels
        seed_index = next(index for index in count(1) if (labels, index) not in used)
        yield finalist, seed_index
        used.add((labels, seed_index))
        repeats[labels] += 1


def in_order(chosen: Sequence[Finalist]) -> tuple[Finalist, ...]:
    """Puts first the two that the first contrast compares.

    Where the reference is the pick itself, it is the rival that stands against it.
    """
    roles = {finalist.role for finalist in chosen}
    first = ("pick", "reference" if "reference" in roles else "rival")
    return tuple(sorted(chosen, key=lambda finalist: finalist.role not in first))


def _served_next(ordered: Sequence[Finalist], repeats: Mapping[Labels, int]) -> Finalist:
    for group, enough in ((ordered[:2], FIRST_REPEATS), *(((f,), OTHER_REPEATS) for f in ordered)):
        fewest = min(group, key=lambda f: repeats[f.labels])
        if repeats[fewest.labels] < enough:
            return fewest
    return min(ordered, key=lambda f: repeats[f.labels])


def runs_until(n_finalists: int, repeats: int) -> int:
    """Returns how many runs give each of so many finalists that many repeats."""
    if n_finalists <= 2:
        return n_finalists * repeats
    first = max(FIRST_REPEATS, repeats)
    return 2 * first + (n_finalists - 2) * max(OTHER_REPEATS, repeats)


def repeats_of_first(n_finalists: int, n_runs: int) -> int:
    """Returns the fewest repeats that either of the first two finalists has after so many runs."""
    chosen = [Finalist(role, (role,)) for role in FINALIST_ROLES[:n_finalists]]
    served = Counter(finalist.labels for finalist, _ in islice(turns(chosen, ()), n_runs))
    return min((served[finalist.labels] for finalist in chosen[:2]), default=0)
