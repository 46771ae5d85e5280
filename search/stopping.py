"""How a run is asked to stop: Ctrl-C, SIGTERM, the end of its time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopFlag:
    """A reason to stop, set once from anywhere; the first one stays."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def ask(self, reason: str) -> None:
        """Asks the run to stop at the next step boundary."""
        self.reason = self.reason or reason


INTERRUPTED = "interrupted"


@contextmanager
def stop_on_signals(flag: StopFlag, announce: Any) -> Iterator[None]:
    """Turns the first Ctrl-C or SIGTERM into a polite stop and the second into an immediate one.

    Outside the main thread signals are left alone. The former handlers come back at the end.

    Args:
        flag: Told at the first signal.
        announce: Called with a line for the user at the first signal.

    Raises:
        KeyboardInterrupt: At the second signal, from wherever the main thread is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if flag.reason == INTERRUPTED:
            raise KeyboardInterrupt
        flag.ask(INTERRUPTED)
        # A flag that was set for another reason stays, but the next signal must end the run.
        flag.reason = INTERRUPTED
        announce("stopping at the next step; once more stops at once")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
