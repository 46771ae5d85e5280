"""`search serve` and `search worker --server` as processes, killed and restarted in mid-run."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import served_worker
import store_factory
from command import PROGRAM
from invariants import check_invariants
from served import make_token
from store_fixtures import copied_store

from search.store.repo import Store

BUDGET = 8
LEASE_S = 4.0
LONGEST_S = 240
STUDY = {
    "strategy": {"name": "random"},
    "recall": False,
    "encoder": {"d_model": 32, "n_layers": 3, "d_ff": 64},
}


class Stack:
    """The processes of one store.

    Args:
        url: The store.
        folder: For files and flags.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.token = make_token(url, "submit")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *words: str, **variables: object) -> subprocess.Popen[str]:
        """Start a command."""
        settings = {
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "SEARCH_CACHE_DIR": self.folder / "cache",
            "SEARCH_LEASE_S": LEASE_S,
            "SEARCH_POLL_S": 0.2,
            "SEARCH_TOKEN": self.token,
            "FAULT_FLAG": self.folder / "struck",
        }
        process = subprocess.Popen(
            words,
            cwd=self.folder,
            env=os.environ | {name: str(value) for name, value in (settings | variables).items()},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def serve(self) -> subprocess.Popen[str]:
        """Start the service, on the same port each time."""
        process = self.start(*PROGRAM, "serve", "--store", self.url, "--port", str(self.port))
        assert process.stderr is not None
        assert "serving" in process.stderr.readline()
        return process

    def worker(self, **variables: object) -> subprocess.Popen[str]:
        """Start a worker that knows the service alone, with files of its own."""
        files = self.folder / f"machine-{len(self.processes)}"
        server = f"http://127.0.0.1:{self.port}"
        words = (sys.executable, served_worker.__file__, "worker", "--server", server)
        return self.start(*words, SEARCH_STORE="", SEARCH_FILES_DIR=files, **variables)

    def wait(self, holds: Callable[[Store], bool], what: str) -> None:
        """Wait until something holds of the store."""
        end = time.monotonic() + LONGEST_S
        while time.monotonic() < end:
            with Store.open(self.url) as store:
                if holds(store):
                    return
            time.sleep(0.3)
        pytest.fail(f"{what}: not within {LONGEST_S} s")

    def close(self) -> None:
        """Leave no process behind."""
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    made = Stack(copied_store("sqlite", tmp_path), tmp_path)
    with Store.open(made.url) as store:
        row = store.ensure_study("faults", store_factory.study_spec(**STUDY), store_factory.PLUGINS)
        store.ask_budget(row.id, str(BUDGET))
    yield made
    made.close()


def ended(store: Store) -> int:
    return sum(row.state == "completed" for row in store.rows("faults", curves=False))


def test__worker_killed_and_service_restarted_in_mid_run__budget_exact_and_nothing_lost(
    stack: Stack,
) -> None:
    service = stack.serve()
    killed = stack.worker(FAULT="mid_step", FAULT_STEP_S=0.1)
    assert killed.wait(LONGEST_S) == -signal.SIGKILL
    workers = [stack.worker(FAULT_STEP_S=0.2) for _ in range(2)]
    stack.wait(lambda store: ended(store) >= 2, "two trials end")
    service.terminate()
    service.communicate(timeout=LONGEST_S)
    time.sleep(1.0)  # a worker finds nobody there
    stack.serve()
    stack.wait(lambda store: store.study("faults").state == "completed", "the study ends")
    for process in workers:
        process.terminate()
        _, said = process.communicate(timeout=LONGEST_S)
        assert process.returncode == 130, said
        assert "nothing is lost" in said
        assert "Traceback" not in said
    with Store.open(stack.url) as store:
        documents = check_invariants(store, "faults", BUDGET)
        attempts = [[attempt["outcome"] for attempt in d["attempts"]] for d in documents]
        # On a busy machine the service may be away for longer than a lease; then it is lost too.
        assert 1 <= attempts.count(["lost", "completed"]) <= 3
        assert all(outcomes in (["completed"], ["lost", "completed"]) for outcomes in attempts)
        [pids] = zip(*store.query("SELECT DISTINCT pid FROM workers").rows, strict=True)
        assert pids == (0,)
