"""What workers need of a store, whether they reach its database or a service before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from search.engine.assignments import ClaimStore
from search.files import StorePlace
from search.messages import Message, TrialFailure, TrialResult
from search.rows import Claim, FailOutcome, StudyRow, StudyState, TrialRow


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


class TrainingStore(WorkerStore, ClaimStore, Protocol):
    """The part that claims trials of a study and trains them."""

    @property
    def address(self) -> StorePlace:
        """Where the files that belong to the store lie."""


class PullStore(TrainingStore, Protocol):
    """The part that `search worker` uses: that of a trial, and what lies between two of them."""

    def open_studies(self, only: str | None) -> Sequence[StudyRow]:
        """Reads the studies that hand out trials, or the one of a name."""

    def register_worker(self, *, devices: Sequence[str], slots: int) -> int:
        """Registers this process; returns its id."""

    def see_worker(self, worker_id: int) -> None:
        """Notes that a worker without a trial is there."""

    def close_worker(self, worker_id: int) -> None:
        """Notes that a worker ended in good order."""

    def reap(self) -> int:
        """Takes back the trials of workers that died; returns how many."""

    def set_study_state(self, study_id: int, state: StudyState, reason: str | None) -> None:
        """Notes how a study ended."""
