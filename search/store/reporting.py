"""What a training process tells on its way: how far it is, and what it reads there."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from search.messages import Message, Progress, Report, Resumed, Warned
from search.rows import Claim
from search.store.engine import UPSERT, database_time
from search.store.events import record
from search.store.finite import non_finite
from search.store.leases import holds_lease, update_live
from search.store.measurements import Event, MetricPoint
from search.store.tables import Trial


def upsert_point(dialect: str) -> Any:
    """The statement that writes a point, or overwrites it."""
    statement = UPSERT[dialect](MetricPoint)
    return statement.on_conflict_do_update(
        index_elements=["trial_id", "split", "metric", "step"],
        set_={"value": statement.excluded.value},
    )


# Made once: building a statement costs more than running it.
LAST_READING = select(func.max(MetricPoint.step)).where(MetricPoint.trial_id == bindparam("trial"))
UPSERT_POINT = {dialect: upsert_point(dialect) for dialect in UPSERT}


def report(connection: Connection, claim: Claim, reports: Sequence[Message]) -> bool:
    """Store reports; those of a lost lease are dropped."""
    if not reports:
        return holds_lease(connection, claim)
    columns = progress_columns(reports)
    if not columns:
        now = database_time(connection) if holds_lease(connection, claim) else None
    else:
        now = update_live(connection, claim, **columns)
    if now is None:
        return False
    readings = [message for message in reports if isinstance(message, Report)]
    bad = [(message.step, non_finite(message.metrics)) for message in readings]
    bad = [(step, what) for step, what in bad if what is not None]
    points = [
        {
            "trial_id": claim.trial_id,
            "split": message.split,
            "metric": metric,
            "step": message.step,
            "value": value,
        }
        for message in readings
        for metric, value in message.metrics.items()
        if non_finite(value) is None
    ]
    is_news = bool(points) and readings[-1].step > last_reading(connection, claim)
    write_points(connection, points)
    if bad:
        step, what = bad[0]
        connection.execute(
            update(Trial)
            .where(Trial.id == claim.trial_id, Trial.diverged_at.is_(None))
            .values(diverged_at=step, reason=f"{what} at step {step}")
        )
    if is_news:
        last = points[-1]["step"]
        metrics = {f"{p['split']}.{p['metric']}": p["value"] for p in points if p["step"] == last}
        record(
            connection, claim.study_id, "report", now, claim.trial_id, step=last, metrics=metrics
        )
    warnings = [message.text for message in reports if isinstance(message, Warned)]
    told = warnings_told(connection, claim) if warnings else set()
    for text in (text for text in warnings if text not in told):
        record(connection, claim.study_id, "warning", now, claim.trial_id, text=text)
    return True


def warnings_told(connection: Connection, claim: Claim) -> set[str]:
    """Return the warnings of a trial that are on record; the same one again is no news."""
    known = select(Event.data).where(
        Event.study_id == claim.study_id,
        Event.trial_id == claim.trial_id,
        Event.kind == "warning",
    )
    return {data["text"] for data in connection.execute(known).scalars() if data}


def progress_columns(reports: Sequence[Message]) -> dict[str, int]:
    """Return what reports say about how far their attempt is."""
    columns: dict[str, int] = {}
    for message in reports:
        if isinstance(message, Warned):
            continue
        columns["step"] = max(message.step, columns.get("step", 0))
        if isinstance(message, Progress):
            columns["n_steps"] = message.steps
        if isinstance(message, Resumed):
            columns["resumed_step"] = message.step
    return columns


def last_reading(connection: Connection, claim: Claim) -> int:
    """Return the step of the newest reading on record.

    A later attempt tells some once more; so does a worker that never heard the answer.
    """
    return connection.execute(LAST_READING, {"trial": claim.trial_id}).scalar_one() or 0


def write_points(connection: Connection, points: Sequence[Mapping[str, Any]]) -> None:
    """Write points; a resumed attempt overwrites those that it makes again."""
    if not points:
        return
    connection.execute(
        UPSERT_POINT[connection.dialect.name],
        list({tuple(p[k] for k in ("split", "metric", "step")): dict(p) for p in points}.values()),
    )
