"""The phase of the screening design: what the strategy proposes while a run of it is left."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from search.phases.base import Ask, Choice
from search.phases.exploration import SearchPhase
from search.rows import Phase, TrialRow
from search.spec.space import Labels, Space
from search.strategies.base import DesignStrategy
from search.strategies.screen_plan import screening_of

if TYPE_CHECKING:
    from search.spec.study import StudySpec


class ScreenPhase:
    """Trains the runs of the design that have no trial, in the design's order."""

    phase: Phase = "screen"

    def __init__(self, study: StudySpec, space: Space, strategy: DesignStrategy) -> None:
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


def n_runs(study: StudySpec, trained: Collection[Labels]) -> int:
    """Returns how many runs a study's design has beside what is trained.

    Counted for the cheap mixer of the baselines; with another, two halves more are to be trained.
    """
    if study.strategy.name != "screen":
        return 0
    space = Space.of(study)
    levels = study.baselines.reference, study.baselines.cheap
    screening = screening_of([tuple(layer) for layer in space.layers], *levels, {})
    runs = screening.runs if screening else ()
    return sum(labels in space and labels not in trained for labels in runs)
