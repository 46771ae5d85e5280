"""A worker's copy of a study's rows: of a study that grows, only what changed is sent again."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from search.remote.wire import RowsPage
from search.rows import TrialRow

if TYPE_CHECKING:
    from search.remote.connection import Service


@dataclass
class Copy:
    """The rows of one study, as of a revision."""

    epoch: str | None = None
    revision: int = 0
    rows: dict[int, TrialRow] = field(default_factory=dict)

    def take(self, page: RowsPage) -> None:
        """Take a page over."""
        if page.epoch != self.epoch:
            self.epoch = page.epoch
            self.rows.clear()
        self.revision = page.revision
        for trial_id in page.gone:
            self.rows.pop(trial_id, None)
        self.rows |= {row.id: row for row in page.rows}


class CopiedRows:
    """Copies of the rows of the studies that a worker works on; threads may share them.

    Args:
        service: Where the rows come from.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.copies: dict[int, Copy] = {}
        self.lock = threading.Lock()

    def rows(self, study_id: int) -> list[TrialRow]:
        """Return every trial of a study by number, as the service has it now.

        What did not change is the very object of the last time, by which others know it again.
        """
        with self.lock:
            copy = self.copies.setdefault(study_id, Copy())
            while True:
                found = self.service.get(
                    f"/workers/studies/{study_id}/rows", epoch=copy.epoch, after=copy.revision
                )
                page = RowsPage.model_validate(found)
                copy.take(page)
                if not page.more:
                    return sorted(copy.rows.values(), key=lambda row: row.number)
