"""Where the seconds of a trial go."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping


class Stages:
    """Seconds by stage; a stage inside another one is not part of that one's time.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = clock
        self._current: str | None = None
        self._since = clock()

    @contextlib.contextmanager
    def time(self, name: str) -> Iterator[None]:
        """Adds the time of a block to a stage."""
        outer = self._current
        self._enter(name)
        try:
            yield
        finally:
            self._enter(outer)

    def add(self, earlier: Mapping[str, float]) -> None:
        """Adds seconds that were spent before."""
        for name, seconds in earlier.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def _enter(self, name: str | None) -> None:
        now = self._clock()
        if self._current is not None:
            self.add({self._current: now - self._since})
        self._current, self._since = name, now
