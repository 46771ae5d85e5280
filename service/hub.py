"""Who listens to events: one reading serves all streams, and idle ones hold nothing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any

import anyio
import anyio.to_thread
from sqlalchemy import func, select

from search.errors import StoreError
from search.store.measurements import Event
from search.store.repo import Store
from service.problems import ProblemError

BATCH = 500
RECENT = 2000
"""Newest events that are kept for the streams; one that is further behind reads the store."""


class Hub:
    """Hands every stream the store's newest events.

    Args:
        store: Holds the events.
        poll_s: Seconds between two readings while somebody listens.
        beat_s: Seconds after which a stream gives a sign of life, whatever else it sends.
        most: Streams at once.
    """

    def __init__(self, store: Store, *, poll_s: float, beat_s: float, most: int) -> None:
        self.store = store
        self.poll_s = poll_s
        self.beat_s = beat_s
        self.most = most
        self.readers = 0
        self.recent: deque[dict[str, Any]] = deque()
        self.floor: int | None = None
        """Every event above this id, up to `newest`, is in `recent`; None = nothing is known."""
        self.newest = 0
        self.closing = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.signal = asyncio.Event()
        self.wanted = asyncio.Event()

    def close(self) -> None:
        """End all streams; call it in the event loop."""
        self.closing = True
        self.wake()

    def close_from_elsewhere(self) -> None:
        """End all streams, from another thread or a signal's handler."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.close)

    def wake(self) -> None:
        """Let every stream look."""
        before, self.signal = self.signal, asyncio.Event()
        before.set()

    def look(self) -> int:
        """Return the id of the newest event; 0 where there is none."""
        with self.store.reading() as connection:
            return connection.execute(select(func.max(Event.id))).scalar() or 0

    async def watch(self) -> None:
        """Read newer events as long as somebody listens."""
        self.loop = asyncio.get_running_loop()
        while not self.closing:
            await self.wanted.wait()
            with suppress(StoreError):  # streams live on while the store is away
                await self.fetch()
            await anyio.sleep(self.poll_s)

    async def fetch(self) -> None:
        """Take over what is newer, and wake the streams for it."""
        if self.floor is None:
            newest = await anyio.to_thread.run_sync(self.look)
            self.recent.clear()
            self.newest = self.floor = newest
            self.wake()
            return
        after = self.newest
        found = await anyio.to_thread.run_sync(lambda: self.store.events(after, limit=BATCH))
        if not found:
            return
        self.recent += found
        self.newest = found[-1]["id"]
        while len(self.recent) > RECENT:
            self.floor = self.recent.popleft()["id"]
        self.wake()

    def admit(self) -> None:
        """Refuse a further stream where there are too many.

        Raises:
            ProblemError: 429.
        """
        if self.readers >= self.most:
            raise ProblemError(
                429, f"{self.most} event streams are open already", headers={"Retry-After": "5"}
            )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Count a reader while it listens."""
        self.readers += 1
        self.wanted.set()
        try:
            yield
        finally:
            self.readers -= 1
            if self.readers == 0:
                self.wanted.clear()
                self.floor = None  # what happens from here on is not read

    async def follow(self, after: int, study: int | None) -> AsyncIterator[dict[str, Any] | None]:
        """Yield every event above an id by rising id, and None for each sign of life.

        Args:
            after: Id of the last event that the reader has.
            study: Only events of this study.
        """
        with self.listening():
            due = time.monotonic() + self.beat_s
            while not self.closing:
                signal = self.signal  # taken before the reading: what comes later sets it
                events, after = await self.read(after, study)
                for event in events:
                    yield event
                # Also between events, and among those of other studies: proxies wait for it, and
                # with it a token is looked at again.
                if time.monotonic() >= due or (
                    not events and not await woken(signal, due - time.monotonic())
                ):
                    yield None
                    due = time.monotonic() + self.beat_s

    async def read(self, after: int, study: int | None) -> tuple[list[dict[str, Any]], int]:
        """Return events above an id, and the id up to which these are all of them.

        Ids rise in the order in which events can be seen, so what was read up to an id is final.
        """
        newest = self.newest
        if self.floor is not None and after >= self.floor:
            newer = takewhile(lambda event: event["id"] > after, reversed(self.recent))
            found = [event for event in newer if study in (None, event["study_id"])]
            return found[::-1], max(after, newest)
        try:
            found = await anyio.to_thread.run_sync(
                lambda: self.store.events(after, study=study, limit=BATCH)
            )
        except StoreError:
            await anyio.sleep(self.poll_s)
            return [], after
        if len(found) == BATCH:
            return found, found[-1]["id"]
        return found, max([after, newest, *(event["id"] for event in found[-1:])])


async def woken(signal: asyncio.Event, seconds: float) -> bool:
    """Wait for a signal; False when the time is over."""
    try:
        await asyncio.wait_for(signal.wait(), seconds)
    except TimeoutError:
        return False
    return True
