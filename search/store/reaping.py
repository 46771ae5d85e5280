"""What happens to a trial that its worker left alone.

A lease that ran out goes on to count until somebody takes the trial over: a slow worker loses
nothing unless it is really replaced. Of an SQLite store all workers are on this machine, so a
process that is gone need not be waited for.
"""

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, update

from search.store.events import record
from search.store.leases import last_ended, rest_clock, retry_or_fail
from search.store.liveness import is_gone
from search.store.tables import Attempt, Trial, Worker
from search.store.types import AnyRow

SILENT = "the worker gave no sign of life until its lease ran out"

HELD = (
    select(
        Attempt.study_id,
        Attempt.trial_id,
        Attempt.number,
        Attempt.heartbeat_at,
        Attempt.lease_expires_at,
        Trial.state,
        Trial.number.label("trial_number"),
        Worker.host,
        Worker.pid,
    )
    .join(Trial, Trial.id == Attempt.trial_id)
    .join(Worker, Worker.id == Attempt.worker_id)
    .where(Attempt.ended_at.is_(None))
)
EXPIRED = HELD.where(Attempt.lease_expires_at < bindparam("now"))
OF_STUDY = Attempt.study_id == bindparam("study")

# Made once: building a statement costs more than running it.
ALL = {"sqlite": HELD, "postgresql": EXPIRED}
ONE_STUDY = {
    "sqlite": HELD.where(OF_STUDY),
    "postgresql": EXPIRED.where(OF_STUDY).with_for_update(of=Attempt, skip_locked=True),
}


@dataclass(frozen=True)
class LostAttempt:
    """An attempt whose worker is lost: its row, until when it counts, and how that shows."""

    row: AnyRow
    ended_at: datetime
    message: str


def studies_to_reap(connection: Connection, now: datetime) -> set[int]:
    """Return the studies of which a worker left a trial alone."""
    rows = connection.execute(ALL[connection.dialect.name], {"now": now}).all()
    return {lost.row.study_id for lost in lost_attempts(rows, now)}


def lost_attempts(rows: Sequence[AnyRow], now: datetime) -> Iterator[LostAttempt]:
    """Yield those of the held attempts whose lease ran out or whose worker is gone."""
    host = socket.gethostname()
    for row in rows:
        if row.lease_expires_at < now:
            yield LostAttempt(row, row.lease_expires_at, SILENT)
        elif row.host == host and is_gone(row.pid, row.heartbeat_at, now):
            yield LostAttempt(row, now, f"the worker's process {row.pid} is gone")


def may_be_lost(connection: Connection, first_expiry: datetime | None, now: datetime) -> bool:
    """Whether `reap` may find something, given when the first of a study's live leases ends."""
    if first_expiry is None:
        return False
    return first_expiry < now or connection.dialect.name == "sqlite"


def reap(connection: Connection, study_id: int, now: datetime) -> int:
    """Take back what workers of a study left alone; returns how many trials that were.

    A reservation goes back to the budget; a trial is queued for another attempt, or fails when it
    was lost too often.
    """
    statement = ONE_STUDY[connection.dialect.name]
    rows = connection.execute(statement, {"study": study_id, "now": now}).all()
    lost = sorted(lost_attempts(rows, now), key=lambda attempt: attempt.ended_at)
    for attempt in lost:
        reap_one(connection, study_id, attempt, now)
    if lost:
        # Others may have worked on after the lease of the lost one.
        until = last_ended(connection, study_id) or lost[-1].ended_at
        rest_clock(connection, study_id, max(until, lost[-1].ended_at))
    return len(lost)


def reap_one(connection: Connection, study_id: int, lost: LostAttempt, now: datetime) -> None:
    """Take one trial back."""
    row = lost.row
    if row.state == "proposed":
        connection.execute(delete(Trial).where(Trial.id == row.trial_id))
        record(connection, study_id, "reservation_lost", now, None, number=row.trial_number)
        return
    connection.execute(
        update(Attempt)
        .where(Attempt.trial_id == row.trial_id, Attempt.number == row.number)
        .values(ended_at=lost.ended_at, outcome="lost", cause="lost", message=lost.message)
    )
    retry_or_fail(connection, study_id, row.trial_id, "lost", lost.message, now)
