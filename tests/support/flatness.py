"""How much workers grow while they train: their memory and their open files, read from /proc."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from crew import Crew

ANONYMOUS = re.compile(r"^RssAnon:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Growth:
    """The most that any of some processes grew.

    Attributes:
        files: Open files.
        bytes: Resident memory of its own. The pages of libraries do not count: they come into
            view when something is first called, and are nobody's growth.
    """

    files: int
    bytes: int


def measured(pid: int) -> tuple[int, int] | None:
    """Open files and resident bytes of a process; None when it is gone."""
    try:
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        found = ANONYMOUS.search(Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return None
    return (files, int(found[1]) << 10) if found else None


def growth(crew: Crew, n_trials: int, every_s: float = 0.1) -> Growth:
    """Watch a crew until so many trials have ended: from a third of them on, to the end."""
    first: dict[int, tuple[int, int]] = {}
    last: dict[int, tuple[int, int]] = {}
    crew.wait_for_trials(n_trials // 3)
    while any(process.poll() is None for process in crew.processes):
        for process in crew.processes:
            found = measured(process.pid)
            if found is not None:
                first.setdefault(process.pid, found)
                last[process.pid] = found
        time.sleep(every_s)
    crew.ends()
    return Growth(
        files=max(last[pid][0] - first[pid][0] for pid in first),
        bytes=max(last[pid][1] - first[pid][1] for pid in first),
    )
