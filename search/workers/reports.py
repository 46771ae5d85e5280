"""Passing a training's messages on to the store, at a rate that costs nothing."""

from __future__ import annotations

from collections.abc import Callable

from search.errors import StoreError
from search.messages import Message, Progress, Report
from search.rows import Claim
from search.workers.contract import WorkerStore

REPORT_EVERY_S = 1.0
LONGEST_S = 15.0
SHARE = 0.05


class ReportBuffer:
    """Sends readings at once and progress now and then, so that a step costs no transaction.

    The longer a training takes, the rarer it tells its progress: once in a twentieth of the time
    that has passed, since each telling opens a connection of its own.
    """

    def __init__(self, store: WorkerStore, claim: Claim, clock: Callable[[], float]) -> None:
        self.store = store
        self.claim = claim
        self.clock = clock
        self.waiting: list[Message] = []
        self.began_at = self.sent_at = clock()

    def add(self, message: Message) -> None:
        """Takes a message."""
        if isinstance(message, Progress):
            self.waiting = [m for m in self.waiting if not isinstance(m, Progress)]
        self.waiting.append(message)
        if self._is_due() or (isinstance(message, Report) and message.split == "selection"):
            self.flush()

    def _is_due(self) -> bool:
        now = self.clock()
        every_s = min(LONGEST_S, max(REPORT_EVERY_S, SHARE * (now - self.began_at)))
        return now - self.sent_at >= every_s

    def flush(self) -> None:
        """Sends what waits; while the store is away it goes on waiting."""
        self.sent_at = self.clock()
        if not self.waiting:
            return
        try:
            self.store.report(self.claim, self.waiting)
        except StoreError:
            return
        self.waiting = []
