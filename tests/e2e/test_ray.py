"""`search worker --on ray` on a real cluster of two nodes on this machine, one of them killed."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import PROGRAM, environment, spawn
from served import make_token, server_of
from tiny_run import own_folders, tiny

from search.store.repo import Store

pytest.importorskip("ray", reason="the extra 'ray' is not installed")
RAY = Path(sys.executable).parent / "ray"
SLOW = {"training__steps": 60, "training__validations": 3}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Nodes:
    """The nodes of a cluster on this machine."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.env = environment(RAY_USAGE_STATS_ENABLED="0", **own_folders(folder))
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> None:
        """Start a node in a session of its own."""
        process = subprocess.Popen(
            [
                *(RAY, "start", *options, "--block", "--num-cpus=1"),
                *("--object-store-memory=80000000", "--disable-usage-stats"),
            ],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(process)

    def kill(self) -> None:
        """Kill the newest node with all that runs on it."""
        process = self.processes.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """A cluster of one node."""
    cluster = Nodes(tmp_path)
    folder = f"/tmp/ray-{os.getpid()}"  # Sockets lie in it, whose paths must be short.
    cluster.start(
        *("--head", f"--port={cluster.port}", "--include-dashboard=false", f"--temp-dir={folder}")
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", cluster.port)):
            break
        time.sleep(0.2)
    yield cluster
    while cluster.processes:
        cluster.kill()
    subprocess.run([RAY, "stop", "--force"], env=cluster.env, check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test__worker_on_ray__node_killed_in_mid_run__every_trial_comes_to_its_end(
    tmp_path: Path, nodes: Nodes
) -> None:
    store = f"sqlite:///{tmp_path / 'search.db'}"
    env = {"SEARCH_LEASE_S": "5", "SEARCH_BEAT_S": "0.5", **own_folders(tmp_path)}
    asked = spawn(
        *("run", "--queue", "--name", "s", "--budget", "8", "--store", store),
        *tiny(tmp_path, **SLOW),
        cwd=tmp_path,
        env=env,
    )
    assert asked.code == 0, asked.err
    command = [
        "worker",
        "--on",
        "ray",
        "--address",
        nodes.address,
        "--store",
        store,
        "--slots",
        "2",
    ]
    process = subprocess.Popen(
        [*PROGRAM, *command, "--until-idle"],
        cwd=tmp_path,
        env=environment(**env),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 200
        with Store.open(store) as opened:

            def wait_for(column: str, n: int) -> None:
                count = f"SELECT COUNT(DISTINCT {column}) FROM trials WHERE {column} IS NOT NULL"
                while opened.query(count).rows[0][0] < n and time.monotonic() < deadline:
                    time.sleep(0.2)

            # The second node joins later: the command itself must not be a part of it.
            wait_for("worker_id", 1)
            nodes.start(f"--address={nodes.address}")
            wait_for("worker_id", 2)
            wait_for("finished_at", 1)
        nodes.kill()
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, said
    with Store.open(store) as opened:
        rows = opened.rows("s")
        assert [row.state for row in rows] == ["completed"] * 8
        assert opened.study("s").n_running == 0


@pytest.mark.slow
def test__worker_on_ray__for_a_service__trains_without_knowing_the_store(
    tmp_path: Path, nodes: Nodes
) -> None:
    store = f"sqlite:///{tmp_path / 'search.db'}"
    env = own_folders(tmp_path)
    asked = spawn(
        *("run", "--queue", "--name", "s", "--budget", "2", "--store", store),
        *tiny(tmp_path),
        cwd=tmp_path,
        env=env,
    )
    assert asked.code == 0, asked.err
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with server_of(store) as (base, _):
        command = ["worker", "--on", "ray", "--address", nodes.address, "--server", base]
        token = {"SEARCH_TOKEN": make_token(store, "submit")}
        done = spawn(*command, "--slots", "1", "--until-idle", cwd=elsewhere, env=env | token)
    assert done.code == 0, done.err
    assert "2 trials started here" in done.err
    assert list(elsewhere.glob("*.db")) == []
    with Store.open(store) as opened:
        assert [row.state for row in opened.rows("s")] == ["completed"] * 2
        assert opened.query("SELECT DISTINCT pid FROM workers").rows == [(0,)]


def test__worker_on_ray__no_cluster_there__one_clear_line(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'search.db'}"
    nowhere = f"127.0.0.1:{free_port()}"
    assert spawn("upgrade", "--store", store, cwd=tmp_path, env=own_folders(tmp_path)).code == 0
    outcome = spawn(
        *("worker", "--on", "ray", "--address", nowhere, "--store", store),
        cwd=tmp_path,
        env=own_folders(tmp_path),
    )
    assert outcome.code == 2
    assert "no Ray cluster answers there" in outcome.error_line
