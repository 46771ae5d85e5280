"""The part of the store's contract that workers use, over HTTP: no database, no password.

What the service decides, it decides in the store's own transactions. Here are only the requests,
and a copy of the rows that a worker proposes from.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from search.files import files_name
from search.remote.connection import LeaseLostError, StillWorkedOnError
from search.remote.copied import CopiedRows
from search.remote.reading import STUDY, RemoteStore
from search.remote.wire import (
    OFFER,
    STUDIES,
    Beat,
    ClaimRequest,
    Commit,
    Committed,
    Fail,
    Failed,
    Finish,
    Held,
    Lease,
    Registered,
    Registration,
    Release,
    Reports,
    StudyEnd,
)
from search.rows import Claim, CommitOutcome, FailOutcome, Offer, StudyRow, StudyState, TrialRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mixers.spec import EncoderSpec
    from search.engine.terms import Terms
    from search.messages import Message, TrialFailure, TrialResult

TIMEOUT_S = 20.0
"""Below a lease by so much that a beat that was lost can be made up for."""


@dataclass(frozen=True)
class ServedPlace:
    """Where a store behind a service lies, as far as files on this machine are concerned."""

    files_name: str
    path: Path | None = None


class RemoteWorkerStore(RemoteStore):
    """A store that a service has, to be worked for; threads may share it.

    Args:
        url: The service's address.
        token: A token of role `submit`.
        timeout_s: How long an answer may take.
    """

    def __init__(self, url: str, token: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__(url, token, timeout_s)
        self.copied = CopiedRows(self)
        self.held: set[tuple[int, int]] = set()
        self.claiming = threading.Lock()
        self.address = ServedPlace(files_name(self.url))

    # Between two trials

    def study(self, study: str | int) -> StudyRow:
        """Return a study."""
        if isinstance(study, str):
            return super().study(study)
        return STUDY.validate_python(self.get(f"/workers/studies/{study}"))

    def open_studies(self, only: str | None = None) -> list[StudyRow]:
        """Return the studies that hand out trials and have a budget, oldest first."""
        return STUDIES.validate_python(self.get("/workers/studies", study=only))

    def rows(
        self, study: str | int, *, curves: bool = True, documents: bool = False
    ) -> list[TrialRow]:
        """Return every trial of a study by number; without curves only what changed is sent."""
        if curves or documents or isinstance(study, str):
            return super().rows(study, curves=curves, documents=documents)
        return self.copied.rows(study)

    def register_worker(self, *, devices: Sequence[str] = (), slots: int = 1) -> int:
        """Register this process; returns its id."""
        registration = Registration(
            host=socket.gethostname(), pid=os.getpid(), devices=list(devices), slots=slots
        )
        known = Registered.model_validate(self.tell("/workers", registration))
        self.address = ServedPlace(known.files)
        return known.worker_id

    def see_worker(self, worker_id: int) -> None:
        """Note that a worker without a trial is there."""
        self.ask("POST", f"/workers/{worker_id}/seen")

    def close_worker(self, worker_id: int) -> None:
        """Note that a worker ended in good order."""
        self.ask("POST", f"/workers/{worker_id}/close")

    def reap(self) -> int:
        """Do nothing: the service takes back the trials of workers that died."""
        return 0

    def set_study_state(self, study_id: int, state: StudyState, reason: str | None) -> None:
        """Note how a study ended, unless another worker took a trial of it meanwhile."""
        end = StudyEnd.model_validate({"state": state, "reason": reason or state})
        with suppress(StillWorkedOnError):  # whoever ends that trial notes it
            self.tell(f"/workers/studies/{study_id}/end", end)

    # Claims

    def claim(self, study_id: int, worker: int, terms: Terms) -> Offer:
        """Ask for work; the service judges the terms by the study's own budget.

        One request at a time: it tells what is in hand, so that the service knows which of its
        answers never arrived.
        """
        with self.claiming:
            wanted = ClaimRequest(
                study_id=study_id,
                agenda=terms.agenda,
                promotions=terms.promotions,
                held=[Held(trial_id=trial, token=token) for trial, token in sorted(self.held)],
            )
            offer = OFFER.validate_python(self.tell(f"/workers/{worker}/claims", wanted))
            if offer.claim is not None:
                self.held.add((offer.claim.trial_id, offer.claim.token))
            return offer

    def commit(
        self,
        claim: Claim,
        spec: EncoderSpec,
        *,
        seed: int,
        seed_index: int,
        training_key: str,
        role: str | None,
        params: Mapping[str, Any],
        attrs: Mapping[str, Any],
        study_attrs: Mapping[str, Any],
        recipe: Mapping[str, float],
        flops: int,
        most_flops: float | None,  # the service knows the study's budget itself
        splits: Sequence[Any],
        until: int | None,
    ) -> CommitOutcome:
        """Give a reservation its architecture."""
        commit = Commit(
            token=claim.token,
            spec=spec.model_dump(mode="json"),
            seed=seed,
            seed_index=seed_index,
            training_key=training_key,
            role=role,
            params=dict(params),
            attrs=dict(attrs),
            study_attrs=dict(study_attrs),
            recipe=dict(recipe),
            flops=flops,
            splits=list(splits),
            until=until,
        )
        try:
            outcome = Committed.model_validate(self.write(claim, "commit", commit)).outcome
        except LeaseLostError:
            outcome = "lost"
        if outcome in ("reused", "lost"):
            self.drop(claim)
        return outcome

    def release(self, claim: Claim, returned: bool, reason: str) -> None:
        """Give a claim back."""
        body = Release(token=claim.token, returned=returned, reason=reason[:1000])
        with self.at_its_end(claim):
            self.write(claim, "release", body)

    # While a trial runs

    def heartbeat(self, claim: Claim) -> StudyState | None:
        """Renew the lease; returns the study's state, None when the trial was taken over."""
        try:
            found = self.write(claim, "heartbeat", Lease(token=claim.token))
        except LeaseLostError:
            return None
        return Beat.model_validate(found).state

    def report(self, claim: Claim, reports: Sequence[Message]) -> bool:
        """Store reports; False when the lease was lost."""
        try:
            self.write(claim, "reports", Reports(token=claim.token, messages=list(reports)))
        except LeaseLostError:
            return False
        return True

    def finish(self, claim: Claim, result: TrialResult) -> bool:
        """End the trial with a result; False when the lease was lost."""
        with self.at_its_end(claim) as end:
            self.write(claim, "result", Finish(token=claim.token, result=result))
        return not end.was_lost

    def fail(self, claim: Claim, failure: TrialFailure) -> FailOutcome:
        """End the attempt; the store decides whether the trial gets another one."""
        with self.at_its_end(claim):
            body = Fail(token=claim.token, failure=failure)
            return Failed.model_validate(self.write(claim, "failure", body)).outcome
        return "lost"

    # Requests

    def write(self, claim: Claim, what: str, body: BaseModel) -> Any:
        """Send what the holder of a trial alone may send.

        Raises:
            LeaseLostError: Another worker has the trial.
        """
        return self.tell(f"/workers/trials/{claim.trial_id}/{what}", body)

    def tell(self, path: str, body: BaseModel) -> Any:
        """Send a document; returns the answer."""
        return self.post(path, body.model_dump_json())

    @contextmanager
    def at_its_end(self, claim: Claim) -> Iterator[End]:
        """Forget a claim once the service has heard of its end, or says that it was lost."""
        end = End()
        try:
            yield end
        except LeaseLostError:
            end.was_lost = True
        self.drop(claim)

    def drop(self, claim: Claim) -> None:
        """Note that a claim is in hand no more."""
        self.held.discard((claim.trial_id, claim.token))


@dataclass
class End:
    """How a claim ended: with what was sent, or before."""

    was_lost: bool = False
