"""The reading part of the store's contract over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from search.errors import StoreError
from search.remote.connection import Service, segment
from search.rows import StudyRow, TrialRow, VerdictRow
from search.store.query import QueryResult

PAGE = 500
STUDY = TypeAdapter(StudyRow)
TRIALS = TypeAdapter(list[TrialRow])


class RemoteStore(Service):
    """A store that a service has, to be read."""

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
        found = self.post("/query", {"sql": sql, "limit": limit, "timeout_s": timeout_s})
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

    def save_verdicts(self, study_id: int, rows: Sequence[VerdictRow]) -> None:
        """Refuse: this way a store is read alone.

        Raises:
            StoreError: Always.
        """
        raise StoreError(f"{self.url}: is read alone from here")
