"""Rows of the processes that claim trials."""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select, update

from search.store.engine import database_time
from search.store.tables import Attempt, Worker

NO_PID = 0
"""In place of the process id of a worker that a service writes for: it may be on any machine."""


def register(
    connection: Connection,
    host: str,
    pid: int,
    devices: Sequence[str],
    slots: int,
    *,
    is_served: bool,
) -> int:
    """Insert a worker; returns its id."""
    now = database_time(connection)
    return connection.execute(
        insert(Worker)
        .values(
            name=f"{host}-{pid}",
            host=host,
            pid=NO_PID if is_served else pid,
            devices=list(devices),
            slots=slots,
            started_at=now,
            last_seen_at=now,
        )
        .returning(Worker.id)
    ).scalar_one()


def busy_elsewhere(connection: Connection, host: str) -> str | None:
    """Return another machine whose worker has a live attempt, or None."""
    return connection.execute(
        select(Worker.host)
        .join(Attempt, Attempt.worker_id == Worker.id)
        .where(
            Worker.host != host,
            Worker.pid != NO_PID,
            Attempt.ended_at.is_(None),
            Attempt.lease_expires_at > database_time(connection),
        )
        .limit(1)
    ).scalar_one_or_none()


def close(connection: Connection, worker_id: int) -> None:
    """Note that a worker ended in good order."""
    now = database_time(connection)
    connection.execute(update(Worker).where(Worker.id == worker_id).values(closed_at=now))


def see(connection: Connection, worker_id: int) -> None:
    """Note a worker's sign of life."""
    now = database_time(connection)
    connection.execute(update(Worker).where(Worker.id == worker_id).values(last_seen_at=now))
