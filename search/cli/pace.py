"""How fast a run goes and how long it will still take."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from search.cli.output import note

if TYPE_CHECKING:
    from search.spec.budget import Budget

LEAST_SHARE = 0.3
"""Of a first trial, before its pace is shown: the training process starts within it."""


class InHand:
    """How far one trial is, and how fast it goes."""

    def __init__(self, clock: Callable[[], float], *, promoted: bool = False) -> None:
        self.clock = clock
        self.promoted = promoted
        self.step = 0
        self.steps = 0
        self._first: tuple[float, int] | None = None

    def progress(self, step: int, steps: int) -> None:
        """It stands after so many of its steps."""
        self.step, self.steps = step, steps
        if self._first is None:
            self._first = (self.clock(), step)

    @property
    def share(self) -> float:
        """Share of it that is done."""
        return self.step / self.steps if self.steps else 0.0

    @property
    def steps_per_s(self) -> float | None:
        """Training steps a second; None before two readings."""
        if self._first is None:
            return None
        seconds, steps = self.clock() - self._first[0], self.step - self._first[1]
        return steps / seconds if seconds > 0 and steps > 0 else None

    @property
    def steps_left_s(self) -> float | None:
        """Seconds until it is trained."""
        rate = self.steps_per_s
        return (self.steps - self.step) / rate if rate else None


class Pace:
    """Rates and time left of a run, from what its observer is told.

    Args:
        budget: What the study may spend.
        spent: What it has spent before this run, in the budget's unit.
        n_before: Trials that had ended before.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        budget: "Budget",
        spent: float,
        n_before: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self.spent = spent
        self.n_before = n_before
        self.clock = clock
        self.began = clock()
        self.n_ended = 0
        self.hands: dict[int, InHand] = {}

    def trial_started(self, trial_id: int, *, promoted: bool = False) -> None:
        """A trial begins, or (`promoted`) one goes on that had ended at a rung before."""
        self.hands[trial_id] = InHand(self.clock, promoted=promoted)

    def progress(self, trial_id: int, step: int, steps: int) -> None:
        """A trial in hand stands after so many of its steps."""
        self.hands[trial_id].progress(step, steps)

    def trial_ended(self, trial_id: int, *, final: bool = True) -> None:
        """A trial came to its end, or (not `final`) went back to the queue."""
        hand = self.hands.pop(trial_id, None)
        self.n_ended += final and not (hand is not None and hand.promoted)

    @property
    def in_hand(self) -> float:
        """How many trials the work in hand amounts to; a promoted one is counted already."""
        return sum(hand.share for hand in self.hands.values() if not hand.promoted)

    @property
    def n_done(self) -> int:
        """Trials of the study that have ended."""
        return self.n_before + self.n_ended

    @property
    def share(self) -> float | None:
        """Share of the budget that is used; None where it cannot be told (FLOPs)."""
        if self.budget.unit == "trials":
            return min(1.0, (self.n_done + self.in_hand) / self.budget.amount)
        if self.budget.unit == "seconds":
            return min(1.0, (self.spent + self.clock() - self.began) / self.budget.amount)
        return None

    @property
    def trial_s(self) -> float | None:
        """Seconds from one trial's end to the next one's; None until enough is done to tell."""
        done = self.n_ended + self.in_hand
        return (self.clock() - self.began) / done if done >= LEAST_SHARE else None

    @property
    def left_s(self) -> float | None:
        """Seconds until the budget is used up; None where it cannot be told."""
        if self.budget.unit == "seconds":
            return max(0.0, self.budget.amount - self.spent - (self.clock() - self.began))
        if self.budget.unit != "trials" or self.trial_s is None:
            return None
        return max(0.0, self.budget.amount - self.n_done - self.in_hand) * self.trial_s


class Ticker:
    """Says every ten seconds how far a long count is, on standard error.

    Args:
        what: What is counted, as it stands behind the numbers.
        clock: Monotonic seconds.
    """

    EVERY_S = 10.0

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.what = what
        self.clock = clock
        self.began = self.said = clock()

    def __call__(self, done: int, total: int) -> None:
        """So many of all are done."""
        now = self.clock()
        if now - self.said < self.EVERY_S or not done:
            return
        self.said = now
        left = (now - self.began) * (total - done) / done
        note(f"{done:,} of {total:,} {self.what}, about {left:.0f} s left")
