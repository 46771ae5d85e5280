"""`search serve` and `search worker --server` as processes, killed and restarted in mid-run."""

import signal
import socket
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
import store_factory
from invariants import check_invariants
from nursery import Born, Nursery
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
        nursery: Where they come from.
        url: The store.
        folder: For files and flags.
    """

    def __init__(self, nursery: Nursery, url: str, folder: Path) -> None:
        self.nursery, self.url, self.folder = nursery, url, folder
        self.token = make_token(url, "submit")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.processes: list[Born] = []

    def start(self, *words: object, **variables: object) -> Born:
        """Start a command."""
        settings = {
            "SEARCH_CACHE_DIR": self.folder / "cache",
            "SEARCH_LEASE_S": LEASE_S,
            "SEARCH_POLL_S": 0.2,
            "SEARCH_TOKEN": self.token,
            "FAULT_FLAG": self.folder / "struck",
        }
        process = self.nursery.start("served_worker", *words, **settings | variables)
        self.processes.append(process)
        return process

    def serve(self) -> Born:
        """Start the service, on the same port each time."""
        process = self.start("serve", "--store", self.url, "--port", self.port)
        self.wait(self.answers, "the service answers")
        return process

    def answers(self) -> bool:
        """Whether the service is there."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=LONGEST_S)
        try:
            connection.request("GET", "/api/v1/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def worker(self, **variables: object) -> Born:
        """Start a worker that knows the service alone, with files of its own."""
        files = self.folder / f"machine-{len(self.processes)}"
        server = f"http://127.0.0.1:{self.port}"
        return self.start("worker", "--server", server, SEARCH_FILES_DIR=files, **variables)

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds."""
        end = time.monotonic() + LONGEST_S
        while not holds():
            if time.monotonic() > end:
                pytest.fail(f"{what}: not within {LONGEST_S} s")
            time.sleep(0.1)

    def close(self) -> None:
        """Leave no process behind."""
        for process in self.processes:
            process.kill()


@pytest.fixture
def stack(nursery: Nursery, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(nursery, copied_store("sqlite", tmp_path), tmp_path)
    yield made
    made.close()


def test__worker_behind_a_service_killed_and_service_restarted__budget_exact_and_nothing_lost(
    stack: Stack,
) -> None:
    with Store.open(stack.url) as store:
        row = store.ensure_study("faults", store_factory.study_spec(**STUDY), store_factory.PLUGINS)
        store.ask_budget(row.id, str(BUDGET))
        service = stack.serve()
        killed = stack.worker(FAULT="mid_step")
        killed.communicate(LONGEST_S)
        assert killed.returncode == -signal.SIGKILL
        workers = [stack.worker(FAULT_STEP_S=0.1) for _ in range(2)]
        stack.wait(lambda: store.study("faults").n_completed >= 2, "two trials end")
        service.send_signal(signal.SIGTERM)
        service.communicate(LONGEST_S)
        time.sleep(0.2)  # a worker finds nobody there
        stack.serve()
        stack.wait(lambda: store.study("faults").state == "completed", "the study ends")
        for process in workers:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(LONGEST_S)
            assert process.returncode == 130, said
            assert "nothing is lost" in said
            assert "Traceback" not in said
        documents = check_invariants(store, "faults", BUDGET)
        attempts = [[attempt["outcome"] for attempt in d["attempts"]] for d in documents]
        # On a busy machine the service may be away for longer than a lease; then it is lost too.
        assert 1 <= attempts.count(["lost", "completed"]) <= 3
        assert all(outcomes in (["completed"], ["lost", "completed"]) for outcomes in attempts)
        assert store.query("SELECT DISTINCT pid FROM workers").rows == [(0,)]
