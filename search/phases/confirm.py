"""The phase of the confirmation: finalists in turn, with fresh seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from search.phases.base import Ask, Choice
from search.phases.finalists import Finalist, finalists, in_order, turns
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
        """Returns the finalist whose turn it is; None without finalists."""
        chosen = self._finalists(rows)
        repeats = (
            Choice(finalist.labels, finalist.role, seed_index)
            for finalist, seed_index in turns(chosen, rows)
        )
        return ask.turn(chain(self._at_other_rates(chosen, rows), repeats))

    def _finalists(self, rows: Sequence[TrialRow]) -> tuple[Finalist, ...]:
        """Returns the finalists that the memory holds; they may have been trained elsewhere."""
        too_much = too_large(rows)
        found = finalists(self.study, self.space, self.listed, rows)
        return tuple(finalist for finalist in found if finalist.labels not in too_much)

    def _at_other_rates(
        self, chosen: Sequence[Finalist], rows: Sequence[TrialRow]
    ) -> Iterator[Choice]:
        """Yields the repeats that were trained at the shared rate and are due at others."""
        if self.sweep is None:
            return
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
                        yield choice
