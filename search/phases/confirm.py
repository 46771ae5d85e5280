"""The phase of the confirmation: finalists in turn, with fresh seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.phases.base import Ask, Choice
from search.phases.finalists import Finalist, finalists, in_order, next_finalist
from search.phases.history import too_large
from search.rows import Phase, TrialRow
from search.spec.baselines import Baseline
from search.spec.space import Space
from search.spec.sweep import Sweep

if TYPE_CHECKING:
    from search.spec.study import StudySpec


class ConfirmPhase:
    """Repeats the finalists, of which there must be two; there is always another seed.

    Where the sweep found rates apart, each repeat is trained at those too before the next one.
    """

    phase: Phase = "confirm"

    def __init__(self, study: StudySpec, space: Space, listed: Sequence[Baseline]) -> None:
        self.study = study
        self.space = space
        self.listed = listed
        self.sweep = Sweep.of(study)

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether there is a finalist and one to compare it with."""
        return len(self._finalists(rows)) > 1

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """Returns the finalist whose turn it is; None where another worker just took the turn."""
        chosen = self._finalists(rows)
        choice = self._at_another_rate(chosen, rows)
        if choice is None:
            turn = next_finalist(chosen, rows)
            if turn is None:
                return None
            finalist, seed_index = turn
            choice = Choice(finalist.labels, finalist.role, seed_index)
        return None if choice.key in ask.refused else choice

    def _finalists(self, rows: Sequence[TrialRow]) -> tuple[Finalist, ...]:
        """Returns the finalists that the memory holds; they may have been trained elsewhere."""
        too_much = too_large(rows)
        found = finalists(self.study, self.space, self.listed, rows)
        return tuple(finalist for finalist in found if finalist.labels not in too_much)

    def _at_another_rate(
        self, chosen: Sequence[Finalist], rows: Sequence[TrialRow]
    ) -> Choice | None:
        """Returns a repeat that was trained at the shared rate and is due at another one."""
        if self.sweep is None:
            return None
        rates = self.sweep.rates_apart(rows, [f.labels for f in in_order(chosen)[:2]])
        repeats = [row for row in rows if row.seed_index > 0]
        done = {Choice(row.mixers, None, row.seed_index, row.recipe).key for row in repeats}
        for finalist in chosen:
            for row in repeats:
                if row.mixers != finalist.labels or row.recipe:
                    continue
                for rate in rates:
                    recipe = self.sweep.recipe(rate)
                    choice = Choice(finalist.labels, finalist.role, row.seed_index, recipe)
                    if choice.key not in done:
                        return choice
        return None
