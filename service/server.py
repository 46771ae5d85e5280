"""Runs the application with uvicorn; open event streams do not delay the end."""

from __future__ import annotations

import signal
import socket
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from search.errors import InputError
from search.store import tokens
from search.store.repo import Store
from service.app import create_app
from service.hub import Hub
from service.settings import ServiceSettings

GRACE_S = 3
BACKLOG = 512
LONGEST_LINE = 16 * 1024


class Server(uvicorn.Server):
    """A server that ends the event streams first when it is told to end, and then ends well.

    Args:
        app: The application.
        settings: Where it listens.
    """

    def __init__(self, app: FastAPI, settings: ServiceSettings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,  # addresses are those of the connection
                timeout_graceful_shutdown=GRACE_S,
                http="h11",  # the other one takes headers of any length
                h11_max_incomplete_event_size=LONGEST_LINE,
                ws="none",
                lifespan="on",
            )
        )
        self.hub: Hub = app.state.hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the end; a second Ctrl-C waits for nobody."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.end()

    def end(self) -> None:
        """End the event streams, then the server; from any thread."""
        self.should_exit = True
        self.hub.close_from_elsewhere()


def serve(settings: ServiceSettings) -> None:
    """Serve until a signal comes.

    Raises:
        InputError: Other machines would reach a store that has no token, or the address is taken.
        StoreError: The store cannot be used.
    """
    app = create_app(settings)
    store: Store = app.state.store
    try:
        require_token(store, settings)
        with bound(settings) as listening:
            address, port = listening.getsockname()[:2]
            name = f"[{address}]" if ":" in address else address
            sys.stderr.write(f"serving {store.url} at http://{name}:{port} (Ctrl-C ends it)\n")
            sys.stderr.flush()
            Server(app, settings).run(sockets=[listening])
    finally:
        store.close()


def require_token(store: Store, settings: ServiceSettings) -> None:
    """Refuse to let other machines in where nobody has to show anything.

    Raises:
        InputError: The address is not this machine's own, and the store has no token.
    """
    if settings.is_loopback:
        return
    with store.reading() as connection:
        if tokens.are_there(connection):
            return
    raise InputError(
        f"other machines reach {settings.host}, and the store has no token yet; make one with "
        "'search token new NAME --role admin', or serve on 127.0.0.1"
    )


def bound(settings: ServiceSettings) -> socket.socket:
    """Return a socket on the address of the settings.

    Raises:
        InputError: It is taken, or not an address of this machine.
    """
    host = settings.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, settings.port))
        listening.listen(BACKLOG)  # from now on clients wait instead of being refused
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}; "
            "choose another with --port"
        ) from None
    return listening
