"""The part of the store that a worker uses while a trial runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from search.rows import Claim, FailOutcome, StudyRow, StudyState, TrialRow
from search.messages import Message, TrialFailure, TrialResult


class WorkerStore(Protocol):
    """The part of the store that a worker uses while a trial runs."""

    def study(self, study: str | int) -> StudyRow:
        """Reads the study."""

    def rows(self, study: str | int, *, curves: bool) -> Sequence[TrialRow]:
        """Reads its trials."""

    def heartbeat(self, claim: Claim) -> StudyState | None:
        """Renews the lease; returns the study's state, None when the trial was taken over."""

    def report(self, claim: Claim, reports: Sequence[Message]) -> bool:
        """Stores reports."""

    def finish(self, claim: Claim, result: TrialResult) -> bool:
        """Ends the trial with a result."""

    def fail(self, claim: Claim, failure: TrialFailure) -> FailOutcome:
        """Ends the attempt; the store decides whether the trial gets another one."""

    def release(self, claim: Claim, returned: bool, reason: str) -> None:
        """Gives the claim back."""
