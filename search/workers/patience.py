"""Waiting for a store that does not answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from search.engine.stopping import StopFlag
from search.errors import StoreAwayError

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 5.0

Answer = TypeVar("Answer")


class Patience:
    """Repeats what the store did not answer, until it does or a stop is asked for.

    Args:
        stop: Ends the waiting.
        tell: Called with a line when the waiting begins, and when it is over.
        longest_s: Longest pause between two tries, seconds.
    """

    def __init__(
        self,
        stop: StopFlag,
        tell: Callable[[str], None],
        longest_s: float = LONGEST_WAIT_S,
    ) -> None:
        self.stop = stop
        self.tell = tell
        self.longest_s = longest_s

    def __call__(self, call: Callable[[], Answer]) -> Answer:
        """Calls until there is an answer.

        Raises:
            StoreAwayError: The store is still away when a stop is asked for.
        """
        pause_s, tries = FIRST_WAIT_S, 0
        while True:
            try:
                answer = call()
            except StoreAwayError as error:
                if self.stop.reason is not None:
                    raise
                if tries == 0:
                    self.tell(f"{error}; waiting until it is back")
                tries += 1
                self.stop.sleep(pause_s)
                pause_s = min(2 * pause_s, self.longest_s)
                continue
            if tries:
                self.tell("the store is back")
            return answer
