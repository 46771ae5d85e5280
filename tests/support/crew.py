"""Real worker processes on a real store, with everything scaled down to seconds."""

import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from invariants import check_invariants, violations
from nursery import Born, Nursery
from sqlalchemy import select

from search.rows import TrialRow
from search.store.engine import database_time
from search.store.repo import Store
from search.store.tables import Attempt


@dataclass(frozen=True)
class Sizes:
    """The durations of the fault matrix, seconds.

    Attributes:
        beat_s: Between two signs of life.
        lease_s: A lease.
        longest_s: The longest that anything may take.
    """

    beat_s: float
    lease_s: float
    longest_s: float


SMALL = Sizes(beat_s=0.3, lease_s=3.0, longest_s=180.0)
SHORT = Sizes(beat_s=0.1, lease_s=1.0, longest_s=180.0)
"""For scenarios in which leases are to run out."""
PATIENT = Sizes(beat_s=0.3, lease_s=60.0, longest_s=180.0)
"""For scenarios in which none may, however slow the machine."""
LITERAL = Sizes(beat_s=15.0, lease_s=90.0, longest_s=1800.0)

OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND state <> 'idle'"
)


class Crew:
    """Worker processes of one study.

    Args:
        nursery: Where they come from.
        url: The store.
        folder: For caches, files and flags.
        budget: Trials of the study.
        sizes: Beats and leases.
    """

    def __init__(
        self, nursery: Nursery, url: str, folder: Path, budget: int, sizes: Sizes = SMALL
    ) -> None:
        self.nursery, self.url, self.folder, self.budget = nursery, url, folder, budget
        self.sizes, self.layers = sizes, 3
        self.processes: list[Born] = []

    def start(self, n: int = 1, url: str | None = None, **variables: object) -> None:
        """Start workers; `variables` are those that fault_worker.py reads."""
        settings = {
            "SEARCH_CACHE_DIR": self.folder / "cache",
            "SEARCH_FILES_DIR": self.folder / "files",
            "SEARCH_BEAT_S": self.sizes.beat_s,
            "SEARCH_LEASE_S": self.sizes.lease_s,
            "FAULT_LAYERS": self.layers,
            "FAULT_FLAG": self.folder / "struck",
        }
        for _ in range(n):
            self.processes.append(
                self.nursery.start(
                    "fault_worker", url or self.url, self.budget, **settings | variables
                )
            )

    def rows(self) -> list[TrialRow]:
        """The study's trials; none while there is no study."""
        # Opened anew each time: a file that this process has open must not be opened once more.
        with Store.open(self.url, create=False) as store:
            if all(study.name != "faults" for study in store.studies()):
                return []
            return store.rows("faults", curves=False)

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds."""
        end = time.monotonic() + self.sizes.longest_s
        while not holds():
            at_work = any(process.poll() is None for process in self.processes)
            if not at_work and not holds():
                pytest.fail(f"{what}: every worker has ended before: {self.ends()}")
            if time.monotonic() > end:
                pytest.fail(f"{what}: not within {self.sizes.longest_s:g} s")
            time.sleep(0.1)

    def wait_for_trials(self, n: int) -> None:
        """Wait until so many trials have ended."""

        def have_ended() -> bool:
            return sum(row.state == "completed" for row in self.rows()) >= n

        self.wait(have_ended, f"{n} trials end")

    def wait_for_hands(self, n: int) -> None:
        """Wait until so many trials run at the same time."""

        def are_running() -> bool:
            return sum(row.state == "running" for row in self.rows()) >= n

        self.wait(are_running, f"{n} trials run")

    def a_lease_ran_out(self) -> bool:
        """Whether somebody has a trial in hand although its lease has ended."""
        with Store.open(self.url, create=False) as store, store.reading() as connection:
            ends = connection.execute(
                select(Attempt.lease_expires_at).where(Attempt.ended_at.is_(None))
            ).scalars()
            return min(ends) < database_time(connection)

    def suspend(self, process: Born) -> None:
        """Stop a process where it has a trial in hand and no transaction open."""

        def is_stopped() -> bool:
            process.send_signal(signal.SIGSTOP)
            if self.is_writable() and any(row.state == "running" for row in self.rows()):
                return True
            process.send_signal(signal.SIGCONT)
            return False

        self.wait(is_stopped, "it has a trial in hand")

    def is_writable(self) -> bool:
        """Whether nobody else is in a transaction."""
        with Store.open(self.url, create=False) as store:
            if not store.address.is_sqlite:
                with store.reading() as connection:
                    return connection.exec_driver_sql(OTHERS).scalar_one() == 0
            path = str(store.address.path)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            connection.execute("ROLLBACK")
        return True

    def ends(self) -> list[tuple[int | None, str]]:
        """Wait for all; returns their exit codes and what they said on standard error."""
        said = [process.communicate(self.sizes.longest_s)[1] for process in self.processes]
        codes = [process.returncode for process in self.processes]
        self.processes.clear()
        return list(zip(codes, said, strict=True))

    def finish(self, lost: int | None = None) -> list[dict[str, Any]]:
        """Run the same command once more, as its user would, and hold the store to its promises."""
        end = time.monotonic() + self.sizes.longest_s
        while True:
            self.start()
            [(code, said)] = self.ends()
            assert code == 0, said
            if "another worker holds" not in said or time.monotonic() > end:
                break
            time.sleep(self.sizes.lease_s / 3)
        with Store.open(self.url, create=False) as store:
            return check_invariants(store, "faults", self.budget, lost)

    def broken(self, lost: int | None = None) -> set[str]:
        """The names of the promises that the store breaks now."""
        with Store.open(self.url, create=False) as store:
            found = violations(store, "faults", self.budget, lost)
        return {what.partition(":")[0] for what in found}

    def close(self) -> None:
        """Leave no process behind."""
        for process in self.processes:
            process.kill()
            process.communicate()
