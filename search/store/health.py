"""Facts about a store that say why work goes on or does not; nothing here changes anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, text

from search.store.tables import Attempt, Trial, Worker
from search.store.types import AnyRow

BLOCKED_SQL = text(
    "SELECT blocked.pid AS waits, holder.pid AS holds, holder.state AS state, "
    "CAST(extract(epoch FROM clock_timestamp() - holder.xact_start) AS float) AS since_s "
    "FROM pg_stat_activity AS blocked "
    "CROSS JOIN LATERAL unnest(pg_blocking_pids(blocked.pid)) AS blocker(pid) "
    "JOIN pg_stat_activity AS holder ON holder.pid = blocker.pid "
    "WHERE blocked.datname = current_database() ORDER BY 1, 2"
)


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """A session of PostgreSQL that waits for another one's lock.

    Attributes:
        waits: Process id of the one that waits.
        holds: Process id of the one that holds the lock.
        state: What the holder does ("idle in transaction" is a program that forgot it).
        since_s: Age of the holder's transaction in seconds.
    """

    waits: int
    holds: int
    state: str
    since_s: float


@dataclass(frozen=True, kw_only=True)
class StudyHealth:
    """What a study's trials are doing.

    Attributes:
        states: Number of trials by state.
        holders: Names of the workers that have a trial in hand, with the trials' numbers.
        left: Numbers of trials held by workers that have ended in good order.
        late: Results that came after their lease was lost.
        causes: Number of failed trials by the cause of their last attempt's end.
        last_failure: Number and error of the failed trial that ended last.
    """

    states: Mapping[str, int]
    holders: Mapping[str, tuple[int, ...]]
    left: tuple[int, ...]
    late: int
    causes: Mapping[str, int]
    last_failure: tuple[int, str] | None


def study_health(connection: Connection, study_id: int) -> StudyHealth:
    """Return what a study's trials are doing."""
    states = select(Trial.state, func.count().label("n")).where(Trial.study_id == study_id)
    live = connection.execute(
        select(Trial.number, Worker.name, Worker.closed_at)
        .join(Attempt, Attempt.trial_id == Trial.id)
        .join(Worker, Worker.id == Attempt.worker_id)
        .where(Attempt.study_id == study_id, Attempt.ended_at.is_(None))
        .order_by(Trial.number)
    ).all()
    holders: dict[str, tuple[int, ...]] = {}
    for row in live:
        holders[row.name] = (*holders.get(row.name, ()), row.number)
    late = connection.execute(
        select(func.count()).where(Attempt.study_id == study_id, Attempt.result.is_not(None))
    ).scalar_one()
    failed = connection.execute(
        select(Trial.number, Trial.error, Trial.finished_at, Attempt.cause)
        .outerjoin(Attempt, (Attempt.trial_id == Trial.id) & (Attempt.number == Trial.attempt))
        .where(Trial.study_id == study_id, Trial.state == "failed")
        .order_by(Trial.finished_at, Trial.number)
    ).all()
    return StudyHealth(
        states={row.state: row.n for row in connection.execute(states.group_by(Trial.state))},
        holders=holders,
        left=tuple(row.number for row in live if row.closed_at is not None),
        late=late,
        causes=by_cause(failed),
        last_failure=(failed[-1].number, failed[-1].error or "unknown") if failed else None,
    )


def by_cause(failed: Sequence[AnyRow]) -> Mapping[str, int]:
    """Count failed trials by cause."""
    causes: dict[str, int] = {}
    for row in failed:
        cause = row.cause or "unknown"
        causes[cause] = causes.get(cause, 0) + 1
    return causes


def present_workers(connection: Connection, since: datetime) -> list[str]:
    """Return the names of the workers that gave a sign of life since a time and have not ended."""
    found = select(Worker.name).where(Worker.closed_at.is_(None), Worker.last_seen_at >= since)
    return list(connection.execute(found.order_by(Worker.name)).scalars())


def blocked(connection: Connection) -> list[Blocked]:
    """Return who waits for whose lock; SQLite does not tell."""
    if connection.dialect.name != "postgresql":
        return []
    return [
        Blocked(waits=row.waits, holds=row.holds, state=row.state or "", since_s=row.since_s or 0.0)
        for row in connection.execute(BLOCKED_SQL)
    ]
