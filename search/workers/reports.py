"""Passing a training's messages on to the store, at a rate that costs nothing."""

from __future__ import annotations

from collections.abc import Callable

from search.errors import StoreError
from search.messages import Message, Progress, Report
from search.rows import Claim
from search.workers.contract import WorkerStore

REPORT_EVERY_S = 1.0


class ReportBuffer:
    """Sends readings at once and progress now and then, so that a step costs no transaction."""

    def __init__(self, store: WorkerStore, claim: Claim, clock: Callable[[], float]) -> None:
        self.store = store
        self.claim = claim
        self.clock = clock
        self.waiting: list[Message] = []
        self.sent_at = clock()

    def add(self, message: Message) -> None:
        """Takes a message."""
        if isinstance(message, Progress):
            self.waiting = [m for m in self.waiting if not isinstance(m, Progress)]
        self.waiting.append(message)
        due = self.clock() - self.sent_at >= REPORT_EVERY_S
        if due or (isinstance(message, Report) and message.split == "selection"):
            self.flush()

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
