"""The phase of the confirmation: finalists in turn, with fresh seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.baselines import Baseline
from search.finalists import finalists, next_finalist
from search.phases.base import Ask, Choice
from search.rows import Phase, TrialRow
from search.space import Space

if TYPE_CHECKING:
    from search.study import StudySpec


class ConfirmPhase:
    """Repeats the finalists; there is always another seed."""

    phase: Phase = "confirm"

    def __init__(self, study: StudySpec, space: Space, listed: Sequence[Baseline]) -> None:
        self.study = study
        self.space = space
        self.listed = listed

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether there is a finalist."""
        return bool(finalists(self.study, self.space, self.listed, rows))

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """Returns the finalist whose turn it is; None where another worker just took the turn."""
        turn = next_finalist(finalists(self.study, self.space, self.listed, rows), rows)
        if turn is None:
            return None
        finalist, seed_index = turn
        choice = Choice(finalist.labels, finalist.role, seed_index)
        return None if choice.key in ask.refused else choice
