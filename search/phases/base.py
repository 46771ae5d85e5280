"""What a phase is asked and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from search.rows import Phase, TrialRow
from search.spec.space import Labels

ChoiceKey = tuple[Labels, int, tuple[tuple[str, float], ...]]


@dataclass(frozen=True)
class Choice:
    """What to train in a reserved trial.

    Attributes:
        labels: Notation of each layer's mixer.
        role: Name of the baseline or finalist.
        seed_index: 0 for the study's own seed, k for the k-th repeat.
        recipe: What the training changes of the study's recipe, by field.
        attrs: The sampler's notes about the trial.
        study_attrs: All of the sampler's notes about the study; None where it made none.
    """

    labels: Labels
    role: str | None = None
    seed_index: int = 0
    recipe: Mapping[str, float] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    study_attrs: Mapping[str, Any] | None = None

    @property
    def key(self) -> ChoiceKey:
        """What makes two choices the same trial."""
        return self.labels, self.seed_index, tuple(sorted(self.recipe.items()))


@dataclass(frozen=True)
class Ask:
    """One question to a phase.

    Attributes:
        number: The number of the trial to be.
        refused: Choices that other workers took since the rows were read.
        notes: The sampler's notes about the study.
        ahead: Trials of the phase that were reserved before and have no architecture yet.
    """

    number: int
    refused: frozenset[ChoiceKey] = frozenset()
    notes: Mapping[str, Any] = field(default_factory=dict)
    ahead: int = 0

    def turn(self, choices: Iterable[Choice]) -> Choice | None:
        """Returns the choice that is this trial's, where those ahead take one each in order.

        Workers that choose at the same time would all want the first, and all but one in vain.

        Args:
            choices: What is left to train, the most urgent first; may be endless.

        Returns:
            The first one that was not refused where fewer are left than trials are ahead; None
            where all were refused.
        """
        free = (choice for choice in choices if choice.key not in self.refused)
        first = next(free, None)
        return first if self.ahead == 0 else next(islice(free, self.ahead - 1, None), first)


class PhaseSource(Protocol):
    """One phase of a study; a pure function of the rows."""

    phase: Phase

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether something is left to train in this phase."""

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """Returns the next trial of the phase, or None where nothing is left."""
