"""Writing events: one row per transition that a live view shows."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert

from search.store.engine import EVENTS_LOCK, take_lock
from search.store.measurements import Event

INSERT_EVENT = insert(Event)


def record(
    connection: Connection,
    study_id: int,
    kind: str,
    at: datetime,
    trial_id: int | None = None,
    **data: Any,
) -> None:
    """Write an event; call it last in a transaction.

    On PostgreSQL writers of events take turns until they commit, or a reader that has seen id 8
    could miss id 7, committed later.
    """
    take_lock(connection, EVENTS_LOCK)
    connection.execute(
        INSERT_EVENT,
        {"study_id": study_id, "trial_id": trial_id, "kind": kind, "at": at, "data": data or None},
    )
