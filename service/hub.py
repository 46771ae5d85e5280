"""Who listens to events: one look at the store serves all streams, and idle ones hold nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread
from sqlalchemy import func, select

from search.errors import StoreError
from search.store.measurements import Event
from search.store.repo import Store
from service.problems import ProblemError

BATCH = 500


class Hub:
    """Wakes the streams when the store has a newer event.

    Args:
        store: Holds the events.
        poll_s: Seconds between two looks while somebody listens.
        beat_s: Seconds after which an idle stream gives a sign of life.
        most: Streams at once.
    """

    def __init__(self, store: Store, *, poll_s: float, beat_s: float, most: int) -> None:
        self.store = store
        self.poll_s = poll_s
        self.beat_s = beat_s
        self.most = most
        self.readers = 0
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
        """Look for newer events as long as somebody listens."""
        self.loop = asyncio.get_running_loop()
        while not self.closing:
            await self.wanted.wait()
            with suppress(StoreError):  # streams live on while the store is away
                newest = await anyio.to_thread.run_sync(self.look)
                if newest != self.newest:
                    self.newest = newest
                    self.wake()
            await anyio.sleep(self.poll_s)

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

    async def follow(self, after: int, study: int | None) -> AsyncIterator[dict[str, Any] | None]:
        """Yield every event above an id by rising id, and None for each sign of life.

        Args:
            after: Id of the last event that the reader has.
            study: Only events of this study.
        """
        with self.listening():
            while not self.closing:
                signal = self.signal  # taken before the look: what comes later sets it
                events = await self.read(after, study)
                for event in events:
                    after = event["id"]
                    yield event
                if not events and not await woken(signal, self.beat_s):
                    yield None

    async def read(self, after: int, study: int | None) -> list[dict[str, Any]]:
        """Return events above an id; none while the store is away."""
        try:
            return await anyio.to_thread.run_sync(
                lambda: self.store.events(after, study=study, limit=BATCH)
            )
        except StoreError:
            await anyio.sleep(self.poll_s)
            return []


async def woken(signal: asyncio.Event, seconds: float) -> bool:
    """Wait for a signal; False when the time is over."""
    try:
        await asyncio.wait_for(signal.wait(), seconds)
    except TimeoutError:
        return False
    return True
