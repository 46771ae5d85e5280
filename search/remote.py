"""A store behind `search serve`: the reading part of the store's contract over HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from pydantic import TypeAdapter

from search.errors import InputError, NothingThereError, StoreAwayError, StoreError
from search.rows import StudyRow, TrialRow
from search.store.query import QueryResult

API = "/api/v1"
TIMEOUT_S = 60.0
PAGE = 500
ENDED_MEANWHILE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
STUDY = TypeAdapter(StudyRow)
TRIALS = TypeAdapter(list[TrialRow])


class RemoteStore:
    """A store that a service has, to be read.

    Args:
        url: The service's address, as `search serve` prints it.
        token: What `search token new` printed; none on the service's own machine without tokens.

    Raises:
        InputError: The address is none of HTTP, or the token cannot be sent.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InputError(f"server {url!r:.80}: write http://host:port or https://host")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise InputError("the token holds characters that no token has; copy it again")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.prefix = parts.path.rstrip("/") + API
        self.headers = {"Accept": "application/json"}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"
        self.connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(
                parts.netloc, timeout=TIMEOUT_S, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
        )

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def study(self, study: str | int) -> StudyRow:
        """Return a study."""
        return STUDY.validate_python(self.get(f"/studies/{segment(study)}"))

    def studies(self) -> list[StudyRow]:
        """Return all studies, oldest first."""
        names: list[str | int] = []
        page = 0
        while page == 0 or len(names) == page * PAGE:
            page += 1
            found = self.get("/studies", sort="created", page=page, page_size=PAGE)
            # A path has no place for a slash within a name; ids are names of the second kind.
            names += [
                item["id"] if "/" in item["name"] else item["name"] for item in found["items"]
            ]
        return [self.study(name) for name in names]

    def rows(
        self, study: str | int, *, curves: bool = True, documents: bool = False
    ) -> list[TrialRow]:
        """Return every trial of a study by number."""
        path = f"/studies/{segment(study)}/rows"
        return TRIALS.validate_python(self.get(path, curves=curves, documents=documents))

    def trial(self, trial_id: int) -> dict[str, Any]:
        """Return all that is known about a trial."""
        found: dict[str, Any] = self.get(f"/trials/{trial_id}")
        return found

    def leaderboard(self, study: str | int, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the rows of the view `pareto` of a study, best first."""
        rows = self.view("pareto", self.study(study).name)
        return rows if limit is None else rows[:limit]

    def view(self, name: str, study: str | None = None) -> list[dict[str, Any]]:
        """Return all rows of a public view, or those of one study, in the view's order."""
        given = {} if study is None else {"study": study}
        found: list[dict[str, Any]] = self.get(f"/views/{segment(name)}", **given)["rows"]
        return found

    def events(
        self, after_id: int = 0, *, study: str | int | None = None, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Return events with an id above `after_id`, by rising id."""
        given = {} if study is None else {"study": study}
        found: list[dict[str, Any]] = self.get("/events", after=after_id, limit=limit, **given)
        return found

    def query(self, sql: str, limit: int = 1000, timeout_s: float = 10.0) -> QueryResult:
        """Run one SELECT; the service's own limits hold too."""
        found = self.ask("POST", "/query", {"sql": sql, "limit": limit, "timeout_s": timeout_s})
        rows = [tuple(row) for row in found["rows"]]
        return QueryResult(tuple(found["columns"]), rows, found["truncated"])

    def looks(self, study: str | int) -> tuple[int, ...]:
        """Return how many confirmation trials had ended at each look."""
        return tuple(self.get(f"/studies/{segment(study)}")["looks"])

    def record_look(self, study_id: int, confirm_trials: int) -> int:
        """Refuse: this way a store is read alone.

        Raises:
            StoreError: Always.
        """
        raise StoreError(f"{self.url}: is read alone from here")

    def get(self, path: str, **query: Any) -> Any:
        """Return what a route answers."""
        plain = {k: str(v).lower() if isinstance(v, bool) else v for k, v in query.items()}
        return self.ask("GET", f"{path}?{urlencode(plain)}" if plain else path)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request and return its answer.

        Raises:
            InputError: The service finds the request wrong, or the token.
            NothingThereError: There is no such thing.
            StoreError: The service or its store cannot be used.
        """
        try:
            status, content = self.send(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise StoreAwayError(
                f"{self.url}: the service does not answer: {str(error) or type(error).__name__}"
            ) from error
        try:
            answer = json.loads(content)
        except ValueError:
            raise StoreError(f"{self.url}: no service of mixsearch answers there") from None
        if status < http.client.MULTIPLE_CHOICES:
            return answer
        raise refusal(self.url, status, str(answer.get("detail", f"HTTP {status}")))

    def send(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, bytes]:
        """Send a request; once more where the service had ended the connection meanwhile.

        No request of this class changes anything, so each may be sent twice.
        """
        headers = dict(self.headers)
        text = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            text = json.dumps(body)

        def once() -> tuple[int, bytes]:
            self.connection.request(method, self.prefix + path, text, headers)
            response = self.connection.getresponse()
            return response.status, response.read()

        try:
            return once()
        except ENDED_MEANWHILE:
            self.connection.close()
            return once()


def segment(name: str | int) -> str:
    """Return a name as one part of a path."""
    return quote(str(name), safe="")


def refusal(url: str, status: int, detail: str) -> Exception:
    """Return the error that a status of the service stands for."""
    if status == http.client.NOT_FOUND:
        return NothingThereError(detail)
    if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return InputError(f"{url}: {detail}; SEARCH_TOKEN holds the token")
    if status >= http.client.INTERNAL_SERVER_ERROR or status == http.client.TOO_MANY_REQUESTS:
        return StoreError(f"{url}: {detail}")
    return InputError(detail)
