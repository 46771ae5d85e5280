"""What a strategy sees and what it gives back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeGuard, runtime_checkable

from search.spec.space import Labels, Space

Direction = Literal["minimize", "maximize"]
PastState = Literal["complete", "pruned", "failed", "running"]


@dataclass(frozen=True)
class PastTrial:
    """A trial of the study as the strategy sees it.

    Attributes:
        number: Its number in the study.
        state: ``pruned`` stands for every trial that is known to be bad without a value, or that
            ended at a rung.
        labels: Its architecture; only architectures of the present space are shown.
        values: The objectives in the study's order, for complete trials.
        attrs: The sampler's notes about the trial.
        excesses: How far it is over each limit that only training shows, by the limit's name; 0
            or less is within.
        at_rung: (step, first objective) of the last rung of a trial that ended at one.
    """

    number: int
    state: PastState
    labels: Labels
    values: tuple[float, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    excesses: Mapping[str, float] = field(default_factory=dict)
    at_rung: tuple[int, float] | None = None

    @property
    def value(self) -> float | None:
        """The first objective, which ranks; None where the trial has no values."""
        return self.values[0] if self.values else None


@dataclass(frozen=True)
class History:
    """All that a proposal may depend on, besides the space and the seed.

    Attributes:
        trials: Trials of the present space, by rising number.
        taken: Architectures that need no second trial, in the space or not.
        study_attrs: The sampler's notes about the whole study.
        directions: Whether a lower or a higher value is better, by objective.
    """

    trials: tuple[PastTrial, ...]
    taken: frozenset[Labels]
    study_attrs: Mapping[str, Any] = field(default_factory=dict)
    directions: tuple[Direction, ...] = ("minimize",)


@dataclass(frozen=True)
class Proposal:
    """An architecture of the space with the sampler's notes, which the store keeps.

    ``study_attrs`` are all notes about the study, not only those that changed.
    """

    labels: Labels
    attrs: Mapping[str, Any] = field(default_factory=dict)
    study_attrs: Mapping[str, Any] = field(default_factory=dict)


class Strategy(Protocol):
    """Proposes architectures; a pure function of its arguments."""

    def propose(
        self, space: Space, history: History, *, number: int, sub_seed: int
    ) -> Proposal | None:
        """Returns the proposal for the trial of this number.

        Args:
            space: The present space.
            history: What is known.
            number: The number of the trial to be.
            sub_seed: 0 at first; counts up when a proposal was of no use and is asked for again.

        Returns:
            The proposal, or None when this strategy has nothing left to propose.
        """


@runtime_checkable
class DesignStrategy(Strategy, Protocol):
    """A strategy that asks for the runs of a design before anything else."""

    def is_screening(self, space: Space, history: History) -> bool:
        """Whether a run of the design is left."""

    def is_of_design(self, proposal: Proposal | None) -> TypeGuard[Proposal]:
        """Whether a proposal is a run of the design."""


def trial_seed(study_seed: int, number: int, sub_seed: int = 0) -> int:
    """Returns the seed of one proposal: 31 bits of a hash of what it belongs to."""
    text = f"{study_seed}/{number}/{sub_seed}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
