"""Requests to a service, from any thread, and what its refusals mean."""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from search.errors import (
    AccessError,
    InputError,
    NothingThereError,
    SearchError,
    StoreAwayError,
    StoreError,
)

API = "/api/v1"
LEASE_LOST = "urn:mixsearch:lease-lost"
"""Type of the problem that answers a write on a trial which another worker has meanwhile."""
STILL_WORKED_ON = "urn:mixsearch:still-worked-on"
"""Type of the problem that answers the end of a study of which somebody has a trial in hand."""
TIMEOUT_S = 60.0
IDLE_S = 4.0
"""A connection that lay idle for longer is not used again: a server ends those after 5 s."""
AWAY = frozenset({408, 429, 502, 503, 504})
"""What a service, or a proxy before it, answers when the same request may succeed later."""
ENDED_MEANWHILE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class LeaseLostError(Exception):
    """The service says that the trial is not this worker's any more."""


class StillWorkedOnError(Exception):
    """The service says that a trial of the study is in hand or waits for a worker."""


REFUSALS = {LEASE_LOST: LeaseLostError, STILL_WORKED_ON: StillWorkedOnError}


class Service:
    """A service, as its clients reach it.

    Args:
        url: Its address, as `search serve` prints it.
        token: What `search token new` printed; none on the service's own machine without tokens.
        timeout_s: How long an answer may take.

    Raises:
        InputError: The address is none of HTTP, or the token cannot be sent.
    """

    def __init__(self, url: str, token: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InputError(f"server {url!r:.80}: write http://host:port or https://host")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise InputError("the token holds characters that no token has; copy it again")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.prefix = parts.path.rstrip("/") + API
        self.headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"
        self.connect = connector(parts.scheme, parts.netloc, timeout_s)
        self.idle: list[tuple[float, http.client.HTTPConnection]] = []
        self.lock = threading.Lock()

    def close(self) -> None:
        """Close the connections."""
        with self.lock:
            idle, self.idle = self.idle, []
        for _, connection in idle:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def get(self, path: str, **query: Any) -> Any:
        """Return what a route answers; what is None is not asked for."""
        plain = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items()
            if value is not None
        }
        return self.ask("GET", f"{path}?{urlencode(plain)}" if plain else path)

    def post(self, path: str, body: Any) -> Any:
        """Return what a route answers to a document."""
        return self.ask("POST", path, body if isinstance(body, str) else json.dumps(body))

    def ask(self, method: str, path: str, text: str | None = None) -> Any:
        """Send a request and return its answer; None where that is empty.

        Raises:
            AccessError: The service refuses the token, or does not prove its name.
            InputError: The service finds the request wrong.
            NothingThereError: There is no such thing.
            LeaseLostError: The trial is not this worker's any more.
            StillWorkedOnError: The study has not ended.
            StoreAwayError: The service, or its store, does not answer now.
            StoreError: They cannot be used.
        """
        try:
            status, content = self.send(method, path, text)
        except ssl.SSLCertVerificationError as error:
            raise AccessError(f"{self.url}: its certificate is not trusted: {error}") from None
        except (OSError, EOFError, http.client.HTTPException) as error:
            raise StoreAwayError(
                f"{self.url}: the service does not answer: {str(error) or type(error).__name__}"
            ) from error
        if status in AWAY:
            raise StoreAwayError(f"{self.url}: {detail_of(content, status)}")
        if not content and status < http.client.MULTIPLE_CHOICES:
            return None
        try:
            answer = json.loads(content)
        except ValueError:
            raise StoreError(f"{self.url}: no service of mixsearch answers there") from None
        if status < http.client.MULTIPLE_CHOICES:
            return answer
        known = REFUSALS.get(str(answer.get("type"))) if isinstance(answer, dict) else None
        if known is not None:
            raise known
        raise refusal(self.url, status, detail_of(content, status))

    def send(self, method: str, path: str, text: str | None) -> tuple[int, bytes]:
        """Send a request; once more where the service had ended an idle connection meanwhile.

        What a repeated request finds done already is not done again, so each may be sent twice.
        """
        connection = self.take()
        is_new = connection is None
        connection = connection or self.connect()
        try:
            answer = self.exchange(connection, method, path, text)
        except ENDED_MEANWHILE:
            connection.close()
            if is_new:
                raise
            connection = self.connect()
            try:
                answer = self.exchange(connection, method, path, text)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            connection.close()
            raise
        with self.lock:
            self.idle.append((time.monotonic(), connection))
        return answer

    def take(self) -> http.client.HTTPConnection | None:
        """Return an idle connection, if there is one that is not too old."""
        with self.lock:
            while self.idle:
                since, connection = self.idle.pop()
                if time.monotonic() - since < IDLE_S:
                    return connection
                connection.close()
        return None

    def exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, text: str | None
    ) -> tuple[int, bytes]:
        """Send a request and read its answer."""
        headers = dict(self.headers)
        if text is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, self.prefix + path, text and text.encode(), headers)
        response = connection.getresponse()
        content = response.read()
        if response.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        return response.status, content


def connector(
    scheme: str, place: str, timeout_s: float
) -> Callable[[], http.client.HTTPConnection]:
    """Return what makes a connection to a place."""
    if scheme == "http":
        return lambda: http.client.HTTPConnection(place, timeout=timeout_s)
    context = ssl.create_default_context()
    return lambda: http.client.HTTPSConnection(place, timeout=timeout_s, context=context)


def segment(name: str | int) -> str:
    """Return a name as one part of a path."""
    return quote(str(name), safe="")


def detail_of(content: bytes, status: int) -> str:
    """Return what a problem document says; a proxy sends none."""
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    return str(answer.get("detail")) if isinstance(answer, dict) else f"HTTP {status}"


def refusal(url: str, status: int, detail: str) -> SearchError:
    """Return the error that a status of the service stands for."""
    if status == http.client.NOT_FOUND:
        return NothingThereError(detail)
    if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return AccessError(f"{url}: {detail}; SEARCH_TOKEN holds the token")
    if status >= http.client.INTERNAL_SERVER_ERROR:
        return StoreError(f"{url}: {detail}")
    return InputError(detail)
