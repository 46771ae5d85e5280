"""The phase of the baselines: the first of the list that is not trained."""

from __future__ import annotations

from collections.abc import Sequence

from search.phases.base import Ask, Choice
from search.phases.history import trained_labels
from search.rows import Phase, TrialRow
from search.spec.baselines import Baseline


class BaselinePhase:
    """Trains the baselines in the order of their list, each once."""

    phase: Phase = "baseline"

    def __init__(self, listed: Sequence[Baseline]) -> None:
        self.listed = listed

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether a baseline has no trial yet."""
        return self.choose(rows, Ask(0)) is not None

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """Returns the next baseline without a trial."""
        trained = trained_labels(rows)
        return ask.turn(Choice(b.labels, b.role) for b in self.listed if b.labels not in trained)
