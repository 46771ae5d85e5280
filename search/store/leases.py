"""Leases: who may work on a trial, and until when.

The fencing token of a lease is the number of its attempt.
"""

from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import Connection, Double, bindparam, delete, exists, func, insert, select, update

from search.messages import Cause
from search.rows import Claim, FailOutcome, StudyState, TrialState
from search.store.engine import DatabaseTime, TimeAfter, database_time
from search.store.events import record
from search.store.retries import may_retry
from search.store.tables import Attempt, Study, Trial

# Made once: building a statement costs more than running it.
LIVE = (
    Attempt.trial_id == bindparam("trial"),
    Attempt.number == bindparam("token"),
    Attempt.ended_at.is_(None),
)
UPDATE_LIVE = update(Attempt).where(*LIVE).returning(DatabaseTime())
SELECT_LIVE = select(Attempt.number).where(*LIVE)
INSERT_ATTEMPT = insert(Attempt)
SELECT_STATE = select(Study.state).where(Study.id == bindparam("study"))
UPDATE_TRIAL = update(Trial).where(Trial.id == bindparam("trial"))
START_CLOCK = update(Study).where(Study.id == bindparam("study"), Study.busy_since.is_(None))
STOP_CLOCK = (
    update(Study)
    .where(Study.id == bindparam("study"))
    .values(busy_s=Study.busy_s + bindparam("seconds", type_=Double()), busy_since=None)
)
CLOCK_TO_REST = select(Study.busy_since).where(
    Study.id == bindparam("study"),
    Study.busy_since.is_not(None),
    ~exists().where(Attempt.study_id == bindparam("study"), Attempt.ended_at.is_(None)),
)
RENEW = (
    update(Attempt)
    .where(*LIVE)
    .values(
        heartbeat_at=DatabaseTime(),
        lease_expires_at=TimeAfter(bindparam("lease_s", type_=Double())),
    )
    .returning(SELECT_STATE.scalar_subquery())
)
STUDY_STOPPED = "the study was stopped"
LAST_ENDED = select(func.max(Attempt.ended_at)).where(Attempt.study_id == bindparam("study"))


def start_attempt(
    connection: Connection,
    *,
    study_id: int,
    trial_id: int,
    number: int,
    worker_id: int,
    now: datetime,
    lease_s: float,
) -> None:
    """Write the attempt that holds the lease."""
    connection.execute(
        INSERT_ATTEMPT,
        {
            "trial_id": trial_id,
            "number": number,
            "study_id": study_id,
            "worker_id": worker_id,
            "started_at": now,
            "heartbeat_at": now,
            "lease_expires_at": now + timedelta(seconds=lease_s),
            "step": 0,
        },
    )


def start_clock(connection: Connection, study_id: int, at: datetime) -> None:
    """Start the clock of a study that stood still."""
    connection.execute(START_CLOCK, {"study": study_id, "busy_since": at})


def end_attempt(
    connection: Connection, claim: Claim, ended_at: datetime, outcome: str, **fields: Any
) -> bool:
    """End the live attempt of a claim; says whether it was still live."""
    if update_live(connection, claim, ended_at=ended_at, outcome=outcome, **fields) is None:
        return False
    rest_clock(connection, claim.study_id, ended_at)
    return True


def update_live(connection: Connection, claim: Claim, **fields: Any) -> datetime | None:
    """Change the live attempt of a claim; returns the database's time, None if it has ended."""
    names = {"trial": claim.trial_id, "token": claim.token}
    return connection.execute(UPDATE_LIVE, {**names, **fields}).scalar_one_or_none()


def rest_clock(connection: Connection, study_id: int, at: datetime) -> None:
    """Stop the study's clock at a time, unless another lease is live."""
    since = connection.execute(CLOCK_TO_REST, {"study": study_id}).scalar_one_or_none()
    if since is not None:
        seconds = max(0.0, (at - since).total_seconds())
        connection.execute(STOP_CLOCK, {"study": study_id, "seconds": seconds})


def last_ended(connection: Connection, study_id: int) -> datetime | None:
    """Return when the attempt at a study's trials that ended last did so; None while none has."""
    return connection.execute(LAST_ENDED, {"study": study_id}).scalar()


def holds_lease(connection: Connection, claim: Claim) -> bool:
    """Whether nobody has taken the claim's trial over."""
    names = {"trial": claim.trial_id, "token": claim.token}
    return connection.execute(SELECT_LIVE, names).scalar_one_or_none() is not None


def heartbeat(connection: Connection, claim: Claim) -> StudyState | None:
    """Renew a lease; returns the study's state, None when the trial was taken over."""
    names = {
        "trial": claim.trial_id,
        "token": claim.token,
        "study": claim.study_id,
        "lease_s": claim.lease_s,
    }
    state = connection.execute(RENEW, names).scalar_one_or_none()
    return cast("StudyState | None", state)


def release(connection: Connection, claim: Claim, returned: bool, reason: str) -> None:
    """Give a trial back: a reservation without an architecture is deleted, others are queued.

    In a study that was stopped for good they end instead.
    """
    state = connection.execute(
        select(Trial.state).where(Trial.id == claim.trial_id).with_for_update()
    ).scalar_one_or_none()
    now = database_time(connection)
    if state is None or not end_attempt(connection, claim, now, "preempted", message=reason):
        return
    if state == "proposed":
        connection.execute(delete(Trial).where(Trial.id == claim.trial_id))
        return
    if is_stopped(connection, claim.study_id):
        end_stopped(connection, claim.study_id, claim.trial_id, now)
        return
    set_state(connection, claim.trial_id, "queued", reason)
    kind = "trial_returned" if returned else "trial_preempted"
    record(connection, claim.study_id, kind, now, claim.trial_id, reason=reason)


def set_state(
    connection: Connection, trial_id: int, state: TrialState, reason: str | None, **fields: Any
) -> None:
    """Set a trial's state with its reason."""
    connection.execute(
        UPDATE_TRIAL, {"trial": trial_id, "state": state, "reason": reason, **fields}
    )


def is_stopped(connection: Connection, study_id: int) -> bool:
    """Whether a study was stopped for good."""
    return connection.execute(SELECT_STATE, {"study": study_id}).scalar_one() == "stopped"


def end_stopped(connection: Connection, study_id: int, trial_id: int, now: datetime) -> None:
    """End a trial because its study was stopped for good; what it reported stays."""
    set_state(connection, trial_id, "stopped", STUDY_STOPPED, finished_at=now)
    record(connection, study_id, "trial_stopped", now, trial_id, reason=STUDY_STOPPED)


def retry_or_fail(
    connection: Connection,
    study_id: int,
    trial_id: int,
    cause: Cause,
    message: str,
    now: datetime,
) -> FailOutcome:
    """Decide what becomes of a trial whose newest attempt ended by a cause, and record it."""
    times = connection.execute(
        select(func.count()).where(Attempt.trial_id == trial_id, Attempt.cause == cause)
    ).scalar_one()
    words = message if times == 1 else f"{message} ({times} attempts ended so)"
    reason = f"{cause.replace('_', ' ')}: {words}"
    details = {"cause": cause, "reason": message, "times": times}
    if may_retry(cause, times) and not is_stopped(connection, study_id):
        set_state(connection, trial_id, "queued", reason)
        record(connection, study_id, "trial_requeued", now, trial_id, **details)
        return "queued"
    set_state(connection, trial_id, "failed", reason, error=words, finished_at=now)
    record(connection, study_id, "trial_failed", now, trial_id, **details)
    return "failed"
