"""What every request must pass before a route sees it, and the headers of every answer.

Plain ASGI, outermost first: security headers, the Host header, the body's size, type and depth.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import ProblemError
from service.settings import ServiceSettings

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
LOG = logging.getLogger(__name__)
JSON_TYPE = "application/json"
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
ODD_ESCAPE = re.compile(rb"\\u(0000|[dD][89a-fA-F])")
NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class SecurityHeaders:
    """Puts the security headers on every answer, also on that of an error inside the service."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        started = False

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self.app(scope, receive, with_headers)
        except Exception as error:
            LOG.error("%s %s", scope["method"], scope["path"], exc_info=error)
            if started:
                raise
            problem = ProblemError(500, "an error inside the service; its log tells more")
            await problem.send(scope, receive, with_headers)


class HostCheck:
    """Refuses names that the service is not known by: a page of another site may point one at it.

    Args:
        app: What comes next.
        names: Names without port; `*` allows all.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self.app = app
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http" and "*" not in self.names:
            given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            if len(given) != 1 or host_name(given[0]) not in self.names:
                problem = ProblemError(
                    400, "the Host header names another host; see SEARCH_SERVE_HOSTS"
                )
                await problem.send(scope, receive, send)
                return
        await self.app(scope, receive, send)


def host_name(header: str) -> str:
    """Return the name in a Host header, lower case and without the port."""
    name, colon, port = header.strip().rpartition(":")
    return (name if colon and port.isdigit() else header.strip()).lower()


class BodyLimits:
    """Reads a body up to its limits before a route sees any of it.

    Args:
        app: What comes next.
        settings: Size, depth and time.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" not in headers and "transfer-encoding" not in headers:
            await self.app(scope, receive, send)
            return
        try:
            body = await self.read(headers, receive)
        except ProblemError as problem:
            await problem.send(scope, receive, send)
            return
        if body is None:
            return
        await self.app(scope, replayed(body, receive), send)

    async def read(self, headers: Headers, receive: Receive) -> bytes | None:
        """Return the whole body; None when the client went away.

        Raises:
            ProblemError: 400, 408, 413 or 415.
        """
        most = self.settings.body_bytes
        too_large = ProblemError(
            413, f"the body is larger than {most} bytes", headers={"Connection": "close"}
        )
        length = headers.get("content-length", "")
        if length.isdigit() and (len(length) > 15 or int(length) > most):
            raise too_large
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise ProblemError(415, "compressed bodies are not read; send it as it is")
        parts: list[bytes] = []
        try:
            with anyio.fail_after(self.settings.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    if sum(map(len, parts)) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise ProblemError(408, "the body did not arrive in time") from None
        body = b"".join(parts)
        self.check(headers.get("content-type", ""), body)
        return body

    def check(self, content_type: str, body: bytes) -> None:
        """Refuse a body of another type, or one that is nested too deeply.

        Raises:
            ProblemError: 400 or 415.
        """
        if not body:
            return
        kind = content_type.partition(";")[0].strip().lower()
        if kind != JSON_TYPE:
            raise ProblemError(415, f"send the body as {JSON_TYPE}")
        if depth(body) > self.settings.body_depth:
            raise ProblemError(400, f"the body is nested deeper than {self.settings.body_depth}")
        if not is_storable(body):
            raise ProblemError(400, "the body holds a null character or half a surrogate pair")


def depth(body: bytes) -> int:
    """Return how deeply a JSON text is nested, without parsing it."""
    deepest = here = 0
    for byte in STRING.sub(b"", body).translate(None, NO_BRACKETS):
        here += 1 if byte in b"[{" else -1
        deepest = max(deepest, here)
    return deepest


def is_storable(body: bytes) -> bool:
    """Whether both databases can keep every text of a JSON document; also where it is no JSON."""
    if not ODD_ESCAPE.search(body):
        return True
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return False
    except ValueError:
        return True  # the route says what is wrong
    return "\\u0000" not in text.replace("\\\\", "")


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read already."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        message: dict[str, Any] = {"type": "http.request", "body": body, "more_body": False}
        return message

    return again
