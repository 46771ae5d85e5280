"""The reading part of the store's contract, which a store over HTTP fulfils too."""

from collections.abc import Sequence
from typing import Any, Protocol

from search.rows import StudyRow, TrialRow, VerdictRow
from search.store.query import QueryResult


class ReadableStore(Protocol):
    """Studies, trials and results to be read; see `Store` for what each method says."""

    @property
    def url(self) -> str:
        """The store's place without its password, for messages."""

    def study(self, study: str | int) -> StudyRow:
        """Return a study."""

    def studies(self) -> list[StudyRow]:
        """Return all studies, oldest first."""

    def rows(
        self, study: str | int, *, curves: bool = True, documents: bool = False
    ) -> list[TrialRow]:
        """Return every trial of a study by number."""

    def trial(self, trial_id: int) -> dict[str, Any]:
        """Return all that is known about a trial."""

    def leaderboard(self, study: str | int, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the architectures of a study, best first."""

    def view(self, name: str, study: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of a public view."""

    def events(
        self, after_id: int = 0, *, study: str | int | None = None, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Return events by rising id."""

    def query(self, sql: str, limit: int = 1000, timeout_s: float = 10.0) -> QueryResult:
        """Run one SELECT."""

    def looks(self, study: str | int) -> tuple[int, ...]:
        """Return how many confirmation trials had ended at each look."""

    def record_look(self, study_id: int, confirm_trials: int) -> int:
        """Count a look; raises StoreError where the store can only be read."""

    def save_verdicts(self, study_id: int, rows: Sequence[VerdictRow]) -> None:
        """Keep the verdicts of a new answer; raises StoreError where the store can only be read."""
