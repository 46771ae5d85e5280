"""Workers: the processes that claim trials."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import select

from search.store.engine import database_time
from search.store.reading import plain_row
from search.store.repo import Store
from search.store.tables import Attempt, Worker
from service.deps import Reader, StoreDep
from service.problems import errors
from service.schemas import Page, PageNumber, PageSize, WorkerDocument

router = APIRouter(prefix="/workers", tags=["workers"])


@router.get("", summary="List workers", responses=errors())
def list_workers(
    store: StoreDep,
    user: Reader,
    alive: Annotated[bool, Query(description="Only those that are there now.")] = False,
    page: PageNumber = 1,
    page_size: PageSize = 50,
) -> Page[WorkerDocument]:
    """Workers, newest first, with the trials in their hands."""
    found = workers_of(store)
    shown = [worker for worker in found if worker.alive or not alive]
    first = (page - 1) * page_size
    items = shown[first : first + page_size]
    return Page(items=items, total=len(shown), page=page, page_size=page_size)


def workers_of(store: Store) -> list[WorkerDocument]:
    """Return all workers, newest first."""
    with store.reading() as connection:
        now = database_time(connection)
        since = now - timedelta(seconds=store.lease_s)
        live = connection.execute(
            select(Attempt.worker_id, Attempt.trial_id, Attempt.heartbeat_at).where(
                Attempt.ended_at.is_(None), Attempt.lease_expires_at > now
            )
        ).all()
        rows = connection.execute(select(Worker).order_by(Worker.id.desc())).all()
    trials: dict[int, list[int]] = {}
    for attempt in live:
        trials.setdefault(attempt.worker_id, []).append(attempt.trial_id)
    return [
        WorkerDocument.model_validate(
            plain_row(row)
            | {
                "trials": sorted(trials.get(row.id, ())),
                "alive": row.closed_at is None
                and (
                    row.id in trials or (row.last_seen_at is not None and row.last_seen_at > since)
                ),
            }
        )
        for row in rows
    ]
