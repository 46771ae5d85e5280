"""Real worker processes at the price of a fork: one process imports everything and forks them.

    nursery = Nursery()
    born = nursery.start(fault_worker.main, URL, "5", FAULT="mid_step")

A born process is a process like any other: it has a number, takes signals, is killed, and ends with
a code. What it says on standard error is in `communicate`.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOOK_S = 0.02
VARIABLES = {
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")]),
    # With more threads than this one, a fork inherits locks that nobody will ever give back.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class Born:
    """One process, as its parent sees it; what of `subprocess.Popen` tests use."""

    def __init__(self, nursery: "Nursery", pid: int, said: Path) -> None:
        self.nursery, self.pid, self.said = nursery, pid, said
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The code it ended with, None while it runs."""
        if self.returncode is None:
            self.returncode = self.nursery.ask(do="look", pid=self.pid)
        return self.returncode

    def communicate(self, timeout: float = 60) -> tuple[None, str]:
        """Wait for its end; returns what it said on standard error."""
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(LOOK_S)
        return None, self.said.read_text(errors="replace")

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The process that forks; it has done a whole run, so that nothing is left to import."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="nursery")
        self.process = subprocess.Popen(
            [sys.executable, __file__, self.folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | VARIABLES,
        )
        self.n_born = 0

    def ask(self, **request: object) -> int | None:
        """Have something done in that process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: int | None = json.loads(self.process.stdout.readline())
        return answer

    def start(self, module: str, *arguments: object, **variables: object) -> Born:
        """Start `main` of a module with arguments, under further variables of the environment."""
        self.n_born += 1
        said = Path(self.folder.name) / f"{self.n_born}.err"
        pid = self.ask(
            do="start",
            module=module,
            arguments=[str(argument) for argument in arguments],
            variables={name: str(value) for name, value in variables.items()},
            said=str(said),
        )
        assert pid is not None
        return Born(self, pid, said)

    def close(self) -> None:
        """End it, and with it whoever still lives."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.folder.cleanup()


def warm_up(folder: str) -> None:
    """Run a whole study once."""
    import fault_worker

    importlib.import_module("broken")
    os.environ |= {"SEARCH_CACHE_DIR": f"{folder}/cache", "SEARCH_FILES_DIR": f"{folder}/files"}
    assert fault_worker.run(f"sqlite:///{folder}/warm.db", "2").exit_code == 0
    try:
        importlib.import_module("psycopg")
        importlib.import_module("sqlalchemy.dialects.postgresql.psycopg")
    except ImportError:
        pass


def fork(module: str, arguments: list[str], variables: dict[str, str], said: str) -> int:
    """Fork a process that calls `main` of a module; returns its number."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        errors = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for ours, theirs in ((nothing, 0), (nothing, 1), (errors, 2)):
            os.dup2(ours, theirs)
        os.environ |= variables
        code = importlib.import_module(module).main(*arguments) or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main(folder: str) -> None:
    """Serve until the tests are gone."""
    warm_up(folder)
    gc.collect()
    gc.freeze()
    alive: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        answer: int | None
        if request.pop("do") == "start":
            answer = fork(**request)
            alive.add(answer)
        else:
            pid, status = os.waitpid(request["pid"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
            alive.discard(pid)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(sys.argv[1])
