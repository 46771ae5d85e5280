"""The training process of a slot: ``python -m search.slots.child SOCKET LIFELINE [MEMORY]``.

It serves one trial after the other over one end of a socket pair, so that data, tokenizer and
imports stay warm. It knows no database. The device is in its environment, its output is the slot's
log file. SOCKET and LIFELINE are inherited file descriptors, MEMORY a limit in bytes.

It never outlives its parent: the socket's end stops it, and should the interpreter be unable to
notice (a native call that keeps the lock), the kernel ends it by SIGIO when the lifeline closes.
"""

from __future__ import annotations

import faulthandler
import fcntl
import functools
import gc
import json
import os
import queue
import signal
import socket
import sys
import threading
import time

from search.messages import Message, PlanTiming, Progress, TrialResult
from search.slots.wire import Done, Lines, Ready, Run, Told
from search.training.memory import limit_data, resident_bytes

PROGRESS_EVERY_S = 0.2


class Child:
    """Serves the jobs that come over a socket, one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self.lines = Lines(connection)
        self.jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.stop_reason: str | None = None
        self._told_at = 0.0

    def listen(self) -> None:
        """Takes what the parent says until it is gone, then ends the process, whatever runs."""
        while (lines := self.lines.receive()) is not None:
            for line in lines:
                message = json.loads(line)
                if message["type"] == "stop":
                    self.stop_reason = message["reason"]
                else:
                    self.stop_reason = None
                    self.jobs.put(line)
        os._exit(0)

    def serve(self) -> None:
        """Runs job after job in the main thread, where signals and native libraries expect it."""
        from search.training.trial import guarded

        # What is imported by now stays: the collection after each trial need not look at it.
        gc.freeze()
        self.lines.send(Ready(resident_bytes=resident_bytes()))
        while True:
            outcome = guarded(functools.partial(self.work, self.jobs.get()))
            self.lines.send(Done(outcome=outcome, resident_bytes=resident_bytes()))

    def work(self, line: bytes) -> TrialResult | PlanTiming:
        """Does one job; a spec that this process cannot read is the job's failure."""
        from search.training.trial import run_trial, time_steps

        job = Run.model_validate_json(line)
        if job.plan_steps is not None:
            return time_steps(job.config, job.plan_steps)
        return run_trial(job.config, report=self.tell, should_stop=lambda: self.stop_reason)

    def tell(self, message: Message) -> None:
        """Passes a message on at once, but progress only a few times a second."""
        now = time.monotonic()
        if isinstance(message, Progress):
            if now - self._told_at < PROGRESS_EVERY_S and message.step < message.steps:
                return
            self._told_at = now
        self.lines.send(Told(message=message))

    def end_softly(self, signum: int, frame: object) -> None:
        """SIGTERM ends the trial at its next step; the parent decides what follows."""
        self.stop_reason = "the training process was told to end (SIGTERM)"


def main(arguments: list[str]) -> None:
    """Sets the process up, then serves until the parent is gone."""
    connection, lifeline, *memory = (int(argument) for argument in arguments)
    faulthandler.enable()
    # Printed by a signal handler in C, so it works while native code keeps the interpreter.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    end_with(lifeline)
    if memory:
        limit_data(memory[0])
    child = Child(socket.socket(fileno=connection))
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, child.end_softly)
    threading.Thread(target=child.listen, name="listener", daemon=True).start()
    child.serve()


def end_with(lifeline: int) -> None:
    """Asks the kernel for SIGIO, whose default is to end the process, when a pipe closes."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)


if __name__ == "__main__":
    main(sys.argv[1:])
