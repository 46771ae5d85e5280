"""Connections that are kept through a burst of transactions and closed when it is over."""

import threading
import time
from typing import Any

from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util.queue import Empty

KEPT_S = 1.0


class BurstPool(QueuePool):
    """A pool that holds no connection while its process does something else.

    Claiming a trial or ending one is a burst of transactions, which share a connection. What a
    worker says while it trains comes alone: that connection is closed when it comes back, and those
    of a burst when nobody has used one for `KEPT_S` seconds. Their entries stay in the pool and
    connect again when they are next used.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._guard = threading.Lock()
        self._used_at = time.monotonic()
        self._end_of_watch: threading.Event | None = None

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        with self._guard:
            now = time.monotonic()
            came_alone = now - self._used_at >= KEPT_S
            self._used_at = now
            if not came_alone and self._end_of_watch is None:
                self._end_of_watch = threading.Event()
                watch = threading.Thread(
                    target=self._close_idle, args=(self._end_of_watch,), name="burst", daemon=True
                )
                watch.start()
        if came_alone:
            record.invalidate()
        super()._do_return_conn(record)

    def _close_idle(self, end: threading.Event) -> None:
        rest_s = KEPT_S
        while not end.wait(rest_s):
            with self._guard:
                rest_s = self._used_at + KEPT_S - time.monotonic()
                if rest_s <= 0:
                    self._end_of_watch = None
                    break
        else:
            return
        for record in self._taken_out():
            record.invalidate()
            super()._do_return_conn(record)

    def _taken_out(self) -> list[ConnectionPoolEntry]:
        taken = []
        while True:
            try:
                taken.append(self._pool.get(block=False))
            except Empty:
                return taken

    def dispose(self) -> None:
        """Close what is idle."""
        with self._guard:
            if self._end_of_watch is not None:
                self._end_of_watch.set()
                self._end_of_watch = None
        super().dispose()
