"""Real worker processes on a real store, with everything scaled down to seconds."""

import os
import subprocess
import sys
import time
from pathlib import Path

import fault_worker
import pytest
from invariants import check_invariants

from search.store.repo import Store

BEAT_S, LEASE_S = 0.3, 3.0
LONGEST_S = 120


class Crew:
    """Worker processes of one study.

    Args:
        url: The store.
        folder: For caches, files and flags.
        budget: Trials of the study.
    """

    def __init__(self, url: str, folder: Path, budget: int) -> None:
        self.url, self.folder, self.budget = url, folder, budget
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, n: int = 1, url: str | None = None, **variables: object) -> None:
        """Start workers; `variables` are those that fault_worker.py reads."""
        root = Path(__file__).parents[2]
        settings = {
            "PYTHONPATH": str(root),
            "SEARCH_CACHE_DIR": str(self.folder / "cache"),
            "SEARCH_FILES_DIR": str(self.folder / "files"),
            "SEARCH_BEAT_S": str(BEAT_S),
            "SEARCH_LEASE_S": str(LEASE_S),
            "FAULT_FLAG": str(self.folder / "struck"),
        }
        for _ in range(n):
            process = subprocess.Popen(
                [sys.executable, fault_worker.__file__, url or self.url, str(self.budget)],
                env=os.environ | settings | {name: str(v) for name, v in variables.items()},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            self.processes.append(process)

    def wait_for_trials(self, n: int) -> None:
        """Wait until so many trials have ended."""
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            with Store.open(self.url, create=False) as store:
                known = [study.name for study in store.studies()]
                rows = store.rows("faults", curves=False) if "faults" in known else []
            if sum(row.state == "completed" for row in rows) >= n:
                return
            time.sleep(0.05)
        pytest.fail(f"{n} trials did not end within {LONGEST_S} s")

    def ends(self) -> list[tuple[int, str]]:
        """Wait for all; returns their exit codes and what they said on standard error."""
        said = [process.communicate(timeout=LONGEST_S)[1] for process in self.processes]
        codes = [process.returncode for process in self.processes]
        self.processes.clear()
        return list(zip(codes, said, strict=True))

    def finish(self) -> list[dict]:
        """Run the same command once more, as its user would, and hold the store to its promises."""
        deadline = time.monotonic() + LONGEST_S
        while True:
            self.start()
            [(code, said)] = self.ends()
            assert code == 0, said
            if "another worker holds" not in said or time.monotonic() > deadline:
                break
            time.sleep(LEASE_S / 3)
        with Store.open(self.url, create=False) as store:
            return check_invariants(store, "faults", self.budget)

    def close(self) -> None:
        """Leave no process behind."""
        for process in self.processes:
            process.kill()
            process.communicate()
