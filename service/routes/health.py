"""Whether the service lives, and whether it can work."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.deps import StoreDep
from service.problems import documented

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The service answers."""

    status: Literal["ok"] = Field("ok", description="Always `ok`.")


class Readiness(Health):
    """The store can be read."""

    schema_version: str = Field(description="Version of the store's tables.", examples=["0004"])


@router.get("/health", summary="Whether the service lives", responses=documented(400, 405, 422))
async def health() -> Health:
    """Answers without a look at the store, so that it tells the service's state alone."""
    return Health()


@router.get("/ready", summary="Whether it can work", responses=documented(400, 405, 422, 503))
def ready(store: StoreDep) -> Readiness:
    """Reads from the store; 503 where it cannot be used."""
    from search.store.schema import inspect_schema

    with store.reading() as connection:
        version = inspect_schema(connection).version
    return Readiness(schema_version=str(version))
