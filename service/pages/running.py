"""What a study's workers have in hand now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from search.figures.curves import curves_figure
from search.figures.shown import PageFigure, page_figure
from search.rows import StudyRow
from search.store.measurements import MetricPoint
from search.store.repo import Store
from search.store.tables import Attempt, Trial, Worker
from search.store.types import AnyRow
from search.wording import ABSENT, role_words
from service.pages.tables import Column, Table, Value, cell, study_href

MOST = 16
TITLE = "Running now"
TEXT = (
    "Objective on the selection split of the trials in hand, by training step, as it was last "
    "reported."
)
IN_HAND = (
    select(
        Trial.id,
        Trial.number,
        Trial.phase,
        Trial.role,
        Trial.code,
        Trial.notation,
        Attempt.step,
        Attempt.n_steps,
        Attempt.heartbeat_at,
        Worker.name.label("worker"),
    )
    .join(Attempt, (Attempt.trial_id == Trial.id) & (Attempt.number == Trial.attempt))
    .join(Worker, Worker.id == Attempt.worker_id)
    .where(Attempt.ended_at.is_(None))
    .order_by(Trial.number)
)
READINGS = (
    select(MetricPoint.trial_id, MetricPoint.step, MetricPoint.value)
    .where(MetricPoint.split == "selection")
    .order_by(MetricPoint.trial_id, MetricPoint.step)
)


@dataclass(frozen=True)
class Running:
    """Trials in hand: their table and their curves so far.

    Attributes:
        table: One row a trial.
        figure: Their curves; None before the first reading.
        n: How many there are, also those beyond the table.
    """

    table: Table
    figure: PageFigure | None
    n: int


def running_now(store: Store, study: StudyRow) -> Running | None:
    """Returns what runs now; None where nothing does."""
    if not study.n_running:
        return None
    with store.reading() as connection:
        found = connection.execute(IN_HAND.where(Attempt.study_id == study.id).limit(MOST)).all()
        points = connection.execute(
            READINGS.where(
                MetricPoint.trial_id.in_([row.id for row in found]),
                MetricPoint.metric == study.objective,
            )
        ).all()
    curves: dict[int, list[tuple[int, float]]] = {row.id: [] for row in found}
    for point in points:
        curves[point.trial_id].append((point.step, point.value))
    columns = (
        Column("trial", right=True),
        Column("layers"),
        Column("phase"),
        Column("step"),
        Column(f"{study.objective} so far", right=True),
        Column("worker"),
        Column("last sign of life"),
    )
    rows = tuple(_row(study, row, curves[row.id]) for row in found)
    labelled = {f"{row.number} {row.code or ''}".strip(): curves[row.id] for row in found}
    return Running(
        Table(TITLE, columns, rows, fits=True), _figure(study, labelled), study.n_running
    )


def _row(study: StudyRow, row: AnyRow, curve: Sequence[tuple[int, float]]) -> tuple[Value, ...]:
    steps = row.n_steps or 0
    step = (
        cell(f"{row.step} of {steps}", kind="progress", share=min(1.0, row.step / steps))
        if steps
        else "preparing"
    )
    return (
        cell(row.number, href=study_href(study.name, study.id, "trials", str(row.number))),
        cell(row.code, kind="stack", title=row.notation or ""),
        cell(row.phase, note=role_words(row.role or "")),
        step,
        f"{curve[-1][1]:.4f}" if curve else ABSENT,
        row.worker,
        cell(row.heartbeat_at, kind="moment"),
    )


def _figure(study: StudyRow, curves: dict[str, list[tuple[int, float]]]) -> PageFigure | None:
    if not any(curves.values()):
        return None
    figure = curves_figure(curves, TITLE, f"{study.objective} on selection")
    return page_figure("running", figure, TITLE, TEXT)
