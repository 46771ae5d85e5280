"""The phase of the screening design: what the strategy proposes while a run of it is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.phases.base import Ask, Choice
from search.phases.exploration import SearchPhase
from search.rows import Phase, TrialRow
from search.space import Space

if TYPE_CHECKING:
    from search.strategies.screen import Screen
    from search.study import StudySpec


class ScreenPhase:
    """Trains the runs of the design that have no trial, in the design's order."""

    phase: Phase = "screen"

    def __init__(self, study: StudySpec, space: Space, strategy: Screen) -> None:
        self.space = space
        self.strategy = strategy
        self.search = SearchPhase(study, space, strategy)

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether a run of the design has no trial yet."""
        return self.strategy.is_screening(self.space, self.search.history(rows, {}))

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """Returns the next run; None where other workers took all that were left."""
        history = self.search.history(rows, ask.notes)
        taken = history.taken | {labels for labels, _, _ in ask.refused}
        for sub_seed in range(len(ask.refused) + 1):
            proposal = self.strategy.propose(
                self.space, history, number=ask.number, sub_seed=sub_seed
            )
            if not self.strategy.is_of_design(proposal):
                return None
            if proposal.labels not in taken:
                return Choice(
                    proposal.labels, attrs=proposal.attrs, study_attrs=proposal.study_attrs
                )
        return None
