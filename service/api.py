"""The API: all routes, which refuse parameters that they do not have."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from service.deps import known_parameters
from service.routes import (
    events,
    health,
    mixers,
    query,
    results,
    session,
    studies,
    trials,
    work,
    workers,
)

PARTS = (health, session, studies, results, trials, mixers, query, workers, work, events)


def api() -> APIRouter:
    """All routes under the version's prefix."""
    router = APIRouter(dependencies=[Depends(known_parameters)])
    for part in PARTS:
        router.include_router(part.router)
    return router
