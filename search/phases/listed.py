"""The only phase of a listed study: every architecture with seed 1, then with seed 2, and so on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from search.phases.base import Ask, Choice
from search.phases.history import too_large
from search.rows import Phase, TrialRow
from search.spec.listed import seeds_of, stacks

if TYPE_CHECKING:
    from search.spec.study import StudySpec


class ListedPhase:
    """Trains the list seed by seed, so that a budget that ends early has whole rounds."""

    phase: Phase = "confirm"

    def __init__(self, study: StudySpec) -> None:
        self.study = study

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether an architecture lacks a trial with one of the seeds."""
        return self.choose(rows, Ask(0)) is not None

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """Returns the next training of the list that has no trial.

        Whatever became of an architecture's other seeds, unless it ran out of memory.
        """
        taken = {(row.mixers, row.seed_index) for row in rows if row.mixers}
        too_much = too_large(rows)
        return ask.turn(
            choice
            for choice in self._in_order()
            if choice.labels not in too_much and (choice.labels, choice.seed_index) not in taken
        )

    def _in_order(self) -> Iterator[Choice]:
        for seed_index in range(1, seeds_of(self.study) + 1):
            for labels in stacks(self.study):
                yield Choice(labels, seed_index=seed_index)
