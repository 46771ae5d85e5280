"""Writing events: one row per transition that a live view shows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Insert, Integer, bindparam, func, insert, select

from search.store.engine import EVENTS_LOCK, LOCK_SPACE
from search.store.measurements import Event

COLUMNS = (Event.study_id, Event.trial_id, Event.kind, Event.at, Event.data)
# The function in FROM has returned before the row gets its id.
TURN = func.pg_advisory_xact_lock(LOCK_SPACE, bindparam("turn", EVENTS_LOCK % 2**31, Integer))
INSERT_EVENT: Mapping[str, Insert] = {
    "sqlite": insert(Event),
    "postgresql": insert(Event).from_select(
        [column.key for column in COLUMNS],
        select(*(bindparam(column.key, type_=column.type) for column in COLUMNS)).select_from(
            TURN.alias("turn")
        ),
    ),
}


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
    event = event_values(study_id, kind, at, trial_id, data)
    connection.execute(INSERT_EVENT[connection.dialect.name], event)


def event_values(
    study_id: int, kind: str, at: datetime, trial_id: int | None, data: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of `INSERT_EVENT`."""
    return {
        "study_id": study_id,
        "trial_id": trial_id,
        "kind": kind,
        "at": at,
        "data": dict(data) or None,
    }
