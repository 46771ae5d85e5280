"""Whether a process of this machine still runs, although its number may be in use again."""

import os
import time
from datetime import datetime, timedelta
from pathlib import Path

GONE_STATES = frozenset("ZX")  # ended; its parent has not noticed yet
SLACK = timedelta(seconds=1)


def is_gone(pid: int, seen_at: datetime, now: datetime) -> bool:
    """Whether the process that gave a sign of life at a time runs no more.

    A process that started after that sign is another one with the same number. Where the system
    does not tell when a process started, a number in use counts as alive.

    Args:
        pid: Its number on this machine.
        seen_at: Its last sign of life.
        now: The present, by the same clock.
    """
    if os.name != "posix" or pid <= 0:
        return False
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # It belongs to another user, or there cannot be such a number here.
    found = state_and_age(pid)
    if found is None:
        return False
    state, age = found
    return state in GONE_STATES or now - age > seen_at + SLACK


def state_and_age(pid: int) -> tuple[str, timedelta] | None:
    """Return a process's state letter and how long ago it started; None where /proc has neither."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The second field is the program's name in brackets, which may hold blanks and brackets.
        fields = text.rpartition(")")[2].split()
        started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started_s
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return fields[0], timedelta(seconds=age_s)
