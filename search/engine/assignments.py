"""What a claim leads to, and the part of the store that claims use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from search.rows import Claim, CommitOutcome, Offer, Phase, StudyRow, TrialRow
from search.tasks.base import Split

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec
    from search.engine.terms import Terms

EndReason = Literal["budget", "space used up", "stopped"]


@dataclass(frozen=True)
class Assignment:
    """A trial to run now; `until` a rung, or to its end."""

    claim: Claim
    spec: EncoderSpec
    seed: int
    seed_index: int
    role: str | None
    recipe: Mapping[str, float] = field(default_factory=dict)
    training_key: str = ""
    until: int | None = None


@dataclass(frozen=True)
class Reused:
    """A trial that was answered from another study of the store."""

    trial_id: int


class LostClaimError(Exception):
    """The lease ran out while the strategy was thinking; the number went back to the budget."""


@dataclass(frozen=True)
class Ended:
    """There is nothing to start; why, and in words."""

    reason: EndReason
    message: str


def splits_of(phase: Phase) -> tuple[Split, ...]:
    """Returns what a trial is read on: the test split is for confirmation only."""
    return ("selection", "test") if phase == "confirm" else ("selection",)


class ClaimStore(Protocol):
    """The part of the store that claims use."""

    def study(self, study: str | int) -> StudyRow:
        """Reads the study."""

    def rows(self, study: str | int, *, curves: bool) -> Sequence[TrialRow]:
        """Reads its trials."""

    def claim(self, study_id: int, worker: int, terms: Terms) -> Offer:
        """Takes a queued trial, one to promote, or the next number."""

    def commit(
        self,
        claim: Claim,
        spec: EncoderSpec,
        *,
        seed: int,
        seed_index: int,
        training_key: str,
        role: str | None,
        params: dict[str, Any],
        attrs: dict[str, Any],
        study_attrs: dict[str, Any],
        recipe: Mapping[str, float],
        flops: int,
        most_flops: float | None,
        splits: Sequence[str],
        until: int | None,
    ) -> CommitOutcome:
        """Writes the architecture of a reserved trial."""

    def release(self, claim: Claim, returned: bool, reason: str) -> None:
        """Gives the claim back."""
