"""One training process as its parent sees it: started, spoken to, ended, and explained."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from search.devices import import_path
from search.messages import TrialFailure
from search.slots.wire import Lines, Run, Stop
from search.training.failure import OUT_OF_MEMORY, clean_tail

LOG_BYTES = 1 << 20
TAIL_BYTES = 16_000
STACKS_S = 0.3

_FAULTS = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}


class ChildProcess:
    """One child process, seen from the parent."""

    def __init__(
        self, log: Path, variables: dict[str, str], memory_limit_bytes: int | None
    ) -> None:
        ours, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        self.lines = Lines(ours)
        self._log = log
        self._log_mark = 0
        log.parent.mkdir(parents=True, exist_ok=True)
        arguments = [str(theirs.fileno()), str(lifeline)]
        if memory_limit_bytes is not None:
            arguments.append(str(memory_limit_bytes))
        try:
            with log.open("ab") as output:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "search.slots.child", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs.fileno(), lifeline),
                    env={
                        **os.environ,
                        **variables,
                        "PYTHONPATH": import_path(),
                        "PYTHONUNBUFFERED": "1",
                    },
                    # Ctrl-C goes to the whole group of a terminal: in a session of its own the
                    # child hears of it from its parent, who decides.
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            os.close(self._lifeline)
            raise
        finally:
            theirs.close()
            os.close(lifeline)

    def send(self, message: Run | Stop) -> bool:
        """Whether the child took the message; it may be gone."""
        try:
            self.lines.send(message)
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """Ends the process and whatever it started, at once."""
        # Before the wait: as long as the leader is not reaped, its group number is its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.lines.connection.close()
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        self._lifeline = -1

    def hung(self, why: str) -> TrialFailure:
        """Describes a hang, with the stacks of all threads, which the child prints on SIGUSR1."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(STACKS_S)
        return TrialFailure(cause="hung", message=why, traceback=self._tail())

    def post_mortem(self) -> TrialFailure:
        """Why the process is gone without an answer.

        What it did itself (an exit, a fault in native code) is the trial's error; a signal from
        outside is a loss. The end of the output tells a C++ abort for want of memory.
        """
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return TrialFailure(
                cause="lost", message="the training process closed its connection", traceback=""
            )
        tail = self._tail()
        if code >= 0:
            return TrialFailure(
                cause="out_of_memory" if OUT_OF_MEMORY.search(tail) else "error",
                message=f"the training process ended itself with exit code {code}",
                traceback=tail,
            )
        name = signal.Signals(-code).name
        if -code in _FAULTS:
            return TrialFailure(
                cause="out_of_memory" if OUT_OF_MEMORY.search(tail) else "error",
                message=f"the training process crashed ({name})",
                traceback=tail,
            )
        hint = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        return TrialFailure(
            cause="lost",
            message=f"the training process was killed from outside ({name}){hint}",
            traceback=tail,
        )

    def mark_log(self) -> None:
        """Remembers where the log of the next trial starts; a long log begins anew."""
        size = self._log.stat().st_size if self._log.exists() else 0
        if size > LOG_BYTES:
            # The child appends, so it goes on at the new end.
            os.truncate(self._log, 0)
            size = 0
        self._log_mark = size

    def _tail(self) -> str:
        try:
            with self._log.open("rb") as log:
                log.seek(self._log_mark)
                return clean_tail(log.read()[-TAIL_BYTES:].decode("utf-8", "replace"))
        except OSError:
            return ""
