"""The application: `create_app(settings)` puts routes, guards and the store together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio.to_thread
from fastapi import FastAPI

from search.settings import settings as machine_settings
from search.store.repo import Store
from service import problems
from service.access import Access
from service.guards import BodyLimits, HostCheck, SecurityHeaders
from service.routes import api
from service.settings import ServiceSettings, service_settings

API = "/api/v1"
SUMMARY = "Studies of token mixers: submit, watch, compare, query."


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
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # their pages load scripts of other sites
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.store = store
    app.state.access = Access(store, settings)
    problems.install(app)
    app.include_router(api(), prefix=API)
    app.add_middleware(BodyLimits, settings=settings)
    app.add_middleware(HostCheck, names=settings.host_names)
    app.add_middleware(SecurityHeaders)
    return app


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Bound the threads that work at once; close the store at the end."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = app.state.settings.threads
    try:
        yield
    finally:
        await anyio.to_thread.run_sync(app.state.store.close)
