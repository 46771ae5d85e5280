"""What changed of a study's rows since a worker looked last.

A worker proposes from all rows of its study. The feed numbers every change that it finds, so that
each row goes over the wire once and again only when it changes. It reads what the store reads for
a worker beside it, and compares; the numbers mean nothing to another process, which their epoch
shows: then a worker begins anew.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from search.remote.wire import MOST_ROWS, RowsPage
from search.rows import TrialRow
from search.store.repo import Store

MOST_STUDIES = 8


@dataclass
class Changes:
    """The rows of a study with the revision of each one's last change; None for a deleted one."""

    epoch: str = field(default_factory=lambda: secrets.token_hex(8))
    revision: int = 0
    rows: dict[int, tuple[int, TrialRow | None]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, rows: list[TrialRow]) -> None:
        """Number what differs from what is known."""
        for row in rows:
            known = self.rows.get(row.id, (0, None))[1]
            # Most are the same objects; the others may still be equal.
            if known is not row and known != row:
                self.set(row.id, row)
        there = {row.id for row in rows}
        for trial_id, (_, known) in list(self.rows.items()):
            if known is not None and trial_id not in there:
                self.set(trial_id, None)

    def set(self, trial_id: int, row: TrialRow | None) -> None:
        """Give a change its number."""
        self.revision += 1
        self.rows[trial_id] = self.revision, row

    def since(self, epoch: str | None, after: int, most: int) -> RowsPage:
        """Return the changes after a revision, the earliest first, and no more than so many."""
        after = after if epoch == self.epoch else 0
        newer = sorted((at, trial_id) for trial_id, (at, _) in self.rows.items() if at > after)
        sent = newer[:most]
        found = [(trial_id, self.rows[trial_id][1]) for _, trial_id in sent]
        return RowsPage(
            epoch=self.epoch,
            revision=sent[-1][0] if len(sent) < len(newer) else self.revision,
            more=len(sent) < len(newer),
            rows=[row for _, row in found if row is not None],
            gone=[trial_id for trial_id, row in found if row is None],
        )


class RowFeed:
    """The changes of the studies that workers asked for last.

    Args:
        store: The store.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.studies: OrderedDict[int, Changes] = OrderedDict()
        self.lock = threading.Lock()

    def since(
        self, study_id: int, epoch: str | None, after: int, most: int = MOST_ROWS
    ) -> RowsPage:
        """Return what changed of a study's rows after a revision of an epoch.

        Raises:
            NothingThereError: There is no such study.
        """
        changes = self.changes_of(study_id)
        # Under the lock, so that an older snapshot never follows a newer one.
        with changes.lock:
            changes.note(self.store.rows(study_id, curves=False))
            return changes.since(epoch, after, most)

    def changes_of(self, study_id: int) -> Changes:
        """Return what is known of a study; that of the one asked for longest ago is forgotten."""
        with self.lock:
            changes = self.studies.setdefault(study_id, Changes())
            self.studies.move_to_end(study_id)
            while len(self.studies) > MOST_STUDIES:
                self.studies.popitem(last=False)
            return changes
