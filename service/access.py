"""Who may do what: tokens, the machine itself, and requests from other sites.

While the store has no token, the machine itself has every right and nobody else has any. Once it
has (or had) one, every request needs a token: as `Authorization: Bearer ...`, or in the cookie
that a browser gets at login.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import threading
import time
from collections import OrderedDict, deque
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import urlsplit

from fastapi import Request

from search.errors import StoreError
from search.store import tokens
from search.store.repo import Store
from service.problems import ProblemError
from service.settings import ServiceSettings
from service.users import LOCAL, Role, User

COOKIE = "mixsearch_token"
CSRF_HEADER = "x-csrf-token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
MOST_ADDRESSES = 10_000
LONGEST_TOKEN = 256
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="mixsearch"'}


class FailedLogins:
    """Counts wrong tokens by address over a sliding time.

    Args:
        most: So many are answered, further ones are refused unseen.
        seconds: How long one counts.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        self.times: OrderedDict[str, deque[float]] = OrderedDict()
        self.lock = threading.Lock()

    def refuse(self, address: str) -> None:
        """Refuse an address that showed too many wrong tokens lately.

        Raises:
            ProblemError: 429, with the seconds to wait.
        """
        now = time.monotonic()
        with self.lock:
            times = self.times.get(address)
            while times and now - times[0] > self.seconds:
                times.popleft()
            if times and len(times) >= self.most:
                wait = max(1, round(self.seconds - (now - times[0])))
                raise ProblemError(
                    429,
                    f"too many wrong tokens from this address; try again in {wait} s",
                    headers={"Retry-After": str(wait)},
                )

    def count(self, address: str) -> None:
        """Count a wrong token."""
        with self.lock:
            self.times.setdefault(address, deque(maxlen=self.most)).append(time.monotonic())
            self.times.move_to_end(address)
            while len(self.times) > MOST_ADDRESSES:
                self.times.popitem(last=False)


class Access:
    """Tells who a request comes from.

    Args:
        store: Holds the tokens.
        settings: Limits.
    """

    def __init__(self, store: Store, settings: ServiceSettings) -> None:
        self.store = store
        self.proxies = frozenset(settings.proxies)
        self.failed = FailedLogins(settings.failed_logins, settings.failed_login_s)

    def identify(self, request: Request) -> User:
        """Return the user of a request.

        Raises:
            ProblemError: 401, 403 or 429.
        """
        header = request.headers.get("authorization")
        cookie = request.cookies.get(COOKIE)
        if header is not None:
            scheme, _, text = header.partition(" ")
            if scheme.lower() != "bearer":
                raise unknown("send the token as 'Authorization: Bearer ...'")
            return self.user_of(request, text.strip(), "header")
        if cookie is not None:
            user = self.user_of(request, cookie, "cookie")
            refuse_other_sites(request)
            refuse_without_csrf(request, user)
            return user
        with self.store.reading() as connection:
            needs_token = tokens.are_there(connection)
        if needs_token or not is_local(request):
            raise unknown("a token is needed; 'search token new' makes one")
        refuse_other_sites(request)
        return User(LOCAL, "admin", "local")

    def user_of(self, request: Request, text: str, via: str) -> User:
        """Return the user of a token.

        Raises:
            ProblemError: 401 for a wrong one, 429 after too many of them.
        """
        address = address_of(request, self.proxies)
        self.failed.refuse(address)
        with self.store.reading() as connection:
            found = None if len(text) > LONGEST_TOKEN else tokens.find(connection, text)
        if found is None:
            self.failed.count(address)
            self.record(f"address {address}", "login", None, "wrong token")
            raise unknown("the token is not valid (any more)")
        if tokens.is_use_due(found.last_used_at, datetime.now(UTC)):
            with suppress(StoreError), self.store.writing() as connection:
                tokens.mark_used(connection, found.id)
        return User(
            found.name, found.role, "cookie" if via == "cookie" else "header", csrf_of(text)
        )

    def record(self, actor: str, action: str, subject: str | None, outcome: str = "done") -> None:
        """Write an entry of the audit; a store that cannot be written now loses it."""
        with suppress(StoreError), self.store.writing() as connection:
            tokens.audit(connection, actor, action, subject, outcome)


def unknown(detail: str) -> ProblemError:
    """The problem of a request without a valid token."""
    return ProblemError(401, detail, headers=CHALLENGE)


def require(user: User, role: Role) -> None:
    """Refuse a user without a role.

    Raises:
        ProblemError: 403.
    """
    if not user.may(role):
        raise ProblemError(
            403, f"this needs the role {role!r}; token {user.name!r} has {user.role!r}"
        )


def csrf_of(token: str) -> str:
    """Return what a browser must send back: only pages of ours can know it."""
    return hmac.new(token.encode(), b"mixsearch csrf", hashlib.sha256).hexdigest()


def refuse_without_csrf(request: Request, user: User) -> None:
    """Refuse a change that a browser sends without the value that our pages hold.

    Raises:
        ProblemError: 403.
    """
    if request.method in SAFE_METHODS:
        return
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(), user.csrf.encode()):
        raise ProblemError(
            403, f"the header {CSRF_HEADER} is missing or wrong; load the page again"
        )


def refuse_other_sites(request: Request) -> None:
    """Refuse what a page of another site makes a browser send.

    Raises:
        ProblemError: 403.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_page = request.method in SAFE_METHODS and request.headers.get("sec-fetch-mode") == "navigate"
    if site in ("cross-site", "same-site") and not is_page:
        raise ProblemError(403, "requests from pages of other sites are refused")
    is_foreign = (
        origin is not None
        and urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    )
    if is_foreign and request.method not in SAFE_METHODS:
        raise ProblemError(403, "requests from pages of other sites are refused")


def address_of(request: Request, proxies: frozenset[str] = frozenset()) -> str:
    """Return the client's address; an IPv6 client counts by its network of 64 bits.

    A proxy of ours appends the address that it sees to the header, so the last one is no claim of
    the client's.
    """
    host = request.client.host if request.client else "unknown"
    if host in proxies:
        host = request.headers.get("x-forwarded-for", host).rpartition(",")[2].strip()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6 and not address.is_loopback:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine and not through a proxy on it."""
    if any(name in request.headers for name in FORWARDED):
        return False
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
