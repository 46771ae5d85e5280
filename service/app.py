"""The application: `create_app(settings)` puts routes, guards and the store together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

import anyio
import anyio.to_thread
from fastapi import FastAPI

from search.errors import StoreError
from search.settings import settings as machine_settings
from search.store.repo import Store
from service import bodies, pages, problems
from service.access import Access
from service.answers import Answers
from service.api import api
from service.guards import BodyLimits, HostCheck, SecurityHeaders
from service.hub import Hub
from service.rowfeed import RowFeed
from service.settings import ServiceSettings, service_settings

API = "/api/v1"
SUMMARY = "Studies of token mixers: submit, watch, compare, query."
DESCRIPTION = """
Every request needs `Authorization: Bearer TOKEN` once the store has a token; before that, the
service answers its own machine alone. Errors are problem documents (RFC 9457): `detail` says in
one line what is wrong, `errors` names the fields. Numbers are finite; what has no value is null.
"""
REAPS_PER_LEASE = 2


def create_app(settings: ServiceSettings | None = None) -> FastAPI:
    """Make the application; it opens the store, and closes it at the end of its lifespan.

    Args:
        settings: Read from the environment by default.

    Raises:
        InputError: The store's URL is wrong.
        StoreError: The store cannot be used.
    """
    settings = settings or service_settings()
    store = Store.open(settings.store, create=True, lease_s=machine_settings().lease_s)
    app = FastAPI(
        title="mixsearch",
        version=version("mixsearch"),
        summary=SUMMARY,
        description=DESCRIPTION.strip(),
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # their pages load scripts of other sites
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.store = store
    app.state.access = Access(store, settings)
    app.state.answers = Answers(store)
    app.state.queries = anyio.CapacityLimiter(settings.queries)
    app.state.feed = RowFeed(store)
    app.state.hub = Hub(
        store, poll_s=settings.poll_s, beat_s=settings.beat_s, most=settings.streams
    )
    problems.install(app)
    app.include_router(api(), prefix=API)
    pages.install(app)
    app.add_middleware(BodyLimits, settings=settings)
    app.add_middleware(HostCheck, names=settings.host_names)
    app.add_middleware(SecurityHeaders)
    describe(app)
    return app


def describe(app: FastAPI) -> None:
    """Let the OpenAPI document know the shape of problems."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            schemas = document["components"]["schemas"]
            document["components"]["schemas"] = bodies.schemas() | schemas | problems.schemas()
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Watch for events and lost workers; bound the threads; close the store at the end."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = app.state.settings.threads
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.state.hub.watch)
            tasks.start_soon(reap, app.state.store)
            yield
            app.state.hub.close()
            tasks.cancel_scope.cancel()
    finally:
        app.state.board.close()
        await anyio.to_thread.run_sync(app.state.store.close)


async def reap(store: Store) -> None:
    """Take back the trials of workers that died, twice a lease.

    Not at once: while the service was away, workers behind it could give no sign of life.
    """
    while True:
        await anyio.sleep(store.lease_s / REAPS_PER_LEASE)
        with suppress(StoreError):  # the next round tries again
            await anyio.to_thread.run_sync(store.reap)
