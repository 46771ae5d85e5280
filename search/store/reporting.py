"""What a training process tells on its way: how far it is, and what it reads there."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select, update

from search.messages import Message, Progress, Report, Resumed, Warned
from search.rows import Claim
from search.store.engine import DatabaseTime
from search.store.events import INSERT_EVENT, event_values, record
from search.store.finite import non_finite
from search.store.inserting import Rows, WithRows
from search.store.leases import LIVE, holds_lease
from search.store.measurements import Event, MetricPoint
from search.store.tables import Attempt, Trial
from search.store.types import AnyRow

# Made once: building a statement costs more than running it.
LAST_READING = select(func.max(MetricPoint.step)).where(MetricPoint.trial_id == bindparam("trial"))
TOLD = (DatabaseTime().label("now"), LAST_READING.scalar_subquery().label("last_reading"))
UPDATE_PROGRESS = update(Attempt).where(*LIVE).returning(*TOLD)
READ_PROGRESS = select(*TOLD).where(select(Attempt.number).where(*LIVE).exists())
# A resumed attempt overwrites the points that it makes again.
UPSERT_POINTS = WithRows(None, {"points": MetricPoint}, overwrite="value")
UPSERT_NEWS = WithRows(INSERT_EVENT, {"points": MetricPoint}, overwrite="value")


def report(connection: Connection, claim: Claim, reports: Sequence[Message]) -> bool:
    """Store reports; those of a lost lease are dropped."""
    if not reports:
        return holds_lease(connection, claim)
    attempt = told_by(connection, claim, progress_columns(reports))
    if attempt is None:
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
    if bad:
        step, what = bad[0]
        connection.execute(
            update(Trial)
            .where(Trial.id == claim.trial_id, Trial.diverged_at.is_(None))
            .values(diverged_at=step, reason=f"{what} at step {step}")
        )
    if points:
        is_news = readings[-1].step > (attempt.last_reading or 0)
        write_points(connection, claim, points, attempt.now if is_news else None)
    warnings = [message.text for message in reports if isinstance(message, Warned)]
    told = warnings_told(connection, claim) if warnings else set()
    for text in (text for text in warnings if text not in told):
        record(connection, claim.study_id, "warning", attempt.now, claim.trial_id, text=text)
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


def told_by(connection: Connection, claim: Claim, columns: Mapping[str, int]) -> AnyRow | None:
    """Note how far the live attempt of a claim is; None if it has ended.

    Returns the time, and the step of the newest reading on record: a later attempt tells some once
    more, and so does a worker that never heard the answer.
    """
    names = {"trial": claim.trial_id, "token": claim.token}
    statement = UPDATE_PROGRESS if columns else READ_PROGRESS
    return connection.execute(statement, {**names, **columns}).one_or_none()


def write_points(
    connection: Connection, claim: Claim, points: Rows, news_at: datetime | None
) -> None:
    """Write points of a trial; if they are news, with the event that tells the last of them."""
    newest = {tuple(p[k] for k in ("split", "metric", "step")): p for p in points}
    rows = {"points": list(newest.values())}
    if news_at is None:
        UPSERT_POINTS.run(connection, {}, rows)
        return
    step = points[-1]["step"]
    metrics = {f"{p['split']}.{p['metric']}": p["value"] for p in points if p["step"] == step}
    told = {"step": step, "metrics": metrics}
    event = event_values(claim.study_id, "report", news_at, claim.trial_id, told)
    UPSERT_NEWS.run(connection, event, rows)
