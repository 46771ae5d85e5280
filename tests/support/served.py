"""The service over a store, as a client in this process or as a server on a port of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from search.store import tokens
from search.store.repo import Store
from service.app import create_app
from service.server import Server, bound
from service.settings import ServiceSettings

API = "/api/v1"
QUICK = {"poll_s": 0.02, "beat_s": 0.1}


@contextmanager
def client_of(
    url: str, *, token: str | None = None, address: str = "127.0.0.1", **settings: Any
) -> Iterator[TestClient]:
    """A client of the service; the store is opened by the service itself."""
    app = create_app(ServiceSettings(store=url, **settings))
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with TestClient(
        app,
        base_url="http://localhost",
        client=(address, 50000),
        headers=headers,
        follow_redirects=False,
    ) as client:
        yield client


def make_token(url: str, role: str, name: str = "") -> str:
    """A new token of a store."""
    with Store.open(url) as store, store.writing() as connection:
        return tokens.create(connection, name or role, role)


@contextmanager
def server_of(url: str, **settings: Any) -> Iterator[tuple[str, FastAPI]]:
    """A running server: its address and its application."""
    chosen = ServiceSettings(store=url, port=0, **(QUICK | settings))
    app = create_app(chosen)
    server = Server(app, chosen)
    with bound(chosen) as socket:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{socket.getsockname()[1]}", app
        finally:
            server.end()
            thread.join(timeout=10)
            assert not thread.is_alive()
