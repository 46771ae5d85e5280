"""What a worker's requests are checked against before the store sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import select

from mixers.explain import load
from mixers.spec import EncoderSpec
from search.engine.claims import FINGERPRINT
from search.errors import NothingThereError
from search.remote.connection import LEASE_LOST, STILL_WORKED_ON
from search.remote.wire import Commit, Held, StudyEnd
from search.rows import FINAL_STATES, Claim, StudyRow
from search.spec.budget import Budget
from search.spec.study_file import study_from
from search.store.repo import Store
from search.store.studies import set_study_state
from search.store.tables import Attempt, Trial, Worker
from service.problems import ProblemError, one_line, wrong_fields

UNHEARD = "its worker never heard of it"


def lease_lost() -> ProblemError:
    """The problem of a write on a trial that is not the worker's any more."""
    return ProblemError(
        409, "the lease is lost: the trial ended, or another worker has it", kind=LEASE_LOST
    )


def known_worker(store: Store, worker_id: int) -> int:
    """Return the id of a worker that registered.

    Raises:
        NothingThereError: None did under this id.
    """
    with store.reading() as connection:
        found = connection.execute(select(Worker.id).where(Worker.id == worker_id)).first()
    if found is None:
        raise NothingThereError(f"no worker {worker_id} ever registered")
    return worker_id


def claim_of(store: Store, trial_id: int, token: int) -> Claim:
    """Return the claim that a trial's id and a fencing token stand for.

    All else about it comes from the store, so that no client can write anything else there.

    Raises:
        ProblemError: 409, the trial is there no more.
    """
    columns = (Trial.study_id, Trial.number, Trial.phase)
    with store.reading() as connection:
        row = connection.execute(select(*columns).where(Trial.id == trial_id)).one_or_none()
    if row is None:
        raise lease_lost()
    return Claim(
        study_id=row.study_id,
        trial_id=trial_id,
        number=row.number,
        phase=row.phase,
        token=token,
        lease_s=store.lease_s,
    )


def give_back(store: Store, worker_id: int, held: Sequence[Held]) -> None:
    """Give back what a worker was handed in answers that never arrived."""
    known = {(claim.trial_id, claim.token) for claim in held}
    live = select(Attempt.trial_id, Attempt.number).where(
        Attempt.worker_id == worker_id, Attempt.ended_at.is_(None)
    )
    with store.reading() as connection:
        found = {(row.trial_id, row.number) for row in connection.execute(live)}
    for trial_id, token in sorted(found - known):
        store.release(claim_of(store, trial_id, token), False, UNHEARD)


def end_study(store: Store, study_id: int, end: StudyEnd) -> None:
    """Note how a study ended, in the transaction that sees that nothing of it is left.

    Raises:
        ProblemError: 409, a trial of it is in hand or waits.
        NothingThereError: There is no such study.
    """
    left = select(Trial.id).where(Trial.study_id == study_id, Trial.state.not_in(FINAL_STATES))
    with store.writing(study_id) as connection:
        if connection.execute(left.limit(1)).first() is not None:
            raise ProblemError(
                409, "a trial of the study is in hand or waits for a worker", kind=STILL_WORKED_ON
            )
        set_study_state(connection, study_id, end.state, end.reason)


def asked_budget(study: StudyRow) -> Budget:
    """Return the budget last asked for.

    Raises:
        ProblemError: 409, there is none.
    """
    if study.budget is None:
        raise ProblemError(409, f"study {study.name!r} has no budget; nothing is handed out")
    return Budget.parse(study.budget)


def admitted_spec(study: StudyRow, body: Commit) -> EncoderSpec:
    """Return the architecture of a commit, which must be one of the study's own.

    Raises:
        ProblemError: 409 where it was made of other data, 422 where it is no stack of the study.
    """
    begun, now = study.attrs.get(FINGERPRINT), body.study_attrs.get(FINGERPRINT)
    if begun is not None and now != begun:
        raise ProblemError(409, f"study {study.name!r} was begun with other data")
    spec = loaded(body.spec)
    asked = study_from(study.spec, source=f"study {study.name}")
    try:
        own = asked.encoder_spec([block.mixer for block in spec.blocks])
    except (ValidationError, ValueError) as error:
        raise wrong_fields([("spec", one_line(error))]) from None
    if own != spec:
        raise wrong_fields([("spec", "its sizes are not those of the study")])
    return spec


def loaded(document: dict[str, Any]) -> EncoderSpec:
    """Read an encoder spec.

    Raises:
        ProblemError: 422, it is wrong, or a mixer is not installed beside the service.
    """
    try:
        return load(EncoderSpec, document)
    except ValueError as error:
        raise wrong_fields([("spec", one_line(error))]) from None
