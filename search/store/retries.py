"""How often a trial is tried again: one rule for all that ends an attempt without a result.

What says more about the machine than about the trial is worth another attempt, but not without
end: a trial that is lost again and again kills its workers. What a trial did of itself it would do
again. A preempted attempt did nothing wrong, so there may be any number of those; a trial that
diverged has its result.
"""

from __future__ import annotations

from collections.abc import Mapping

from search.messages import Cause

MOST_ATTEMPTS: Mapping[Cause, int] = {
    "lost": 3,
    # Each costs its whole time limit.
    "hung": 2,
    "out_of_memory": 1,
    "error": 1,
    "proof": 1,
}
"""Attempts at one trial that may end by a cause; with the last of them the trial has failed."""


def may_retry(cause: Cause, times: int) -> bool:
    """Whether a trial gets another attempt.

    Args:
        cause: What ended its newest attempt.
        times: How many of its attempts ended so, the newest among them.
    """
    return times < MOST_ATTEMPTS[cause]


def is_of_machine(cause: Cause) -> bool:
    """Whether a cause says more about the machine than about the trial."""
    return MOST_ATTEMPTS[cause] > 1
