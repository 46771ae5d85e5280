"""How a run is asked to stop: Ctrl-C, SIGTERM, the end of its time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED = "interrupted"
TIME_IS_UP = "its time is up"
LOOK_S = 0.1
RING, HOME = b"r", b"h"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""Ctrl-C, the system's request to end, and a batch system's warning that it will end the job."""


class StopFlag:
    """A reason to stop, set once from anywhere; the first one stays.

    Args:
        until: Monotonic time from which on it is set by itself.
        clock: Monotonic seconds.
    """

    def __init__(
        self, until: float = float("inf"), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.until = until
        self.clock = clock
        self.is_at_once = False
        self._asked: str | None = None

    @property
    def reason(self) -> str | None:
        """Why to stop at the next step boundary; None to go on."""
        return self._asked or (TIME_IS_UP if self.clock() >= self.until else None)

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal asked for it."""
        return self._asked == INTERRUPTED

    def ask(self, reason: str) -> None:
        """Asks the run to stop at the next step boundary."""
        self._asked = self._asked or reason

    def interrupt(self) -> None:
        """Notes a signal; it outdoes another reason, so that a second signal ends the run."""
        self._asked = INTERRUPTED

    def ask_at_once(self) -> None:
        """Asks the run not even to wait for the next step boundary."""
        self.is_at_once = True
        self.interrupt()

    def check(self) -> str | None:
        """Returns the reason to stop at the next step boundary, None to go on.

        Raises:
            KeyboardInterrupt: The run is to stop at once.
        """
        if self.is_at_once:
            raise KeyboardInterrupt
        return self.reason

    def sleep(self, seconds: float) -> None:
        """Sleeps, or less when a stop is asked for meanwhile.

        A signal handler sets the flag, so there is no lock that it could find taken.
        """
        end = time.monotonic() + seconds
        while self.reason is None and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_S))


@contextmanager
def stop_on_signals(flag: StopFlag, announce: Callable[[str], object]) -> Iterator[None]:
    """Turns the first signal into a polite stop and the second into an immediate one.

    Outside the main thread signals are left alone. The former handlers come back at the end.

    Args:
        flag: Told at the first of `SIGNALS`.
        announce: Called with a line for the user at the first signal, in a thread of its own.

    Raises:
        KeyboardInterrupt: At the second signal, from wherever the main thread is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    with bell(lambda: announce("stopping at the next step; once more stops at once")) as ring:

        def handle(number: int, frame: FrameType | None) -> None:
            if flag.is_interrupted:
                raise KeyboardInterrupt
            flag.interrupt()
            ring()

        before = {number: signal.signal(number, handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def bell(answer: Callable[[], object]) -> Iterator[Callable[[], object]]:
    """Yields what a signal handler may call to have something done in a thread of its own.

    A handler runs in the midst of whatever it interrupts: a stream that is being written to refuses
    to be entered again, and that error would be the interrupted trial's.
    """
    inner, outer = os.pipe()

    def attend() -> None:
        while os.read(inner, 1) == RING:
            with suppress(OSError):  # nobody may be listening any more
                answer()

    porter = threading.Thread(target=attend, name="porter", daemon=True)
    porter.start()
    try:
        yield lambda: os.write(outer, RING)
    finally:
        os.write(outer, HOME)
        porter.join()
        os.close(inner)
        os.close(outer)
