"""The parent's side of one training process: start, feed, watch, replace.

A slot keeps one child warm for the trials of one device. The child is replaced after a crash, an
out-of-memory, a hang, or when it has grown. This module does not import torch, so the process that
keeps the books stays small and cannot be taken down by a trial.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from search.devices import device_variables
from search.messages import Message, PlanTiming, TrialConfig, TrialFailure, TrialResult
from search.slots.child_process import ChildProcess
from search.slots.wire import ANSWERS, Done, Ready, Run, Stop, Told
from search.training.failure import one_line

HANG_S = 900.0
GRACE_S = 30.0
TICK_S = 0.1

# Growth over the level after the first trial that leads to a fresh process: a share and a floor.
GROWTH = 0.25
GROWTH_BYTES = 256 << 20

_serial = itertools.count()

Outcome = TrialResult | TrialFailure | PlanTiming


class Slot:
    """One warm training process on one device.

    Args:
        device: ``cpu`` or ``cuda:i``; the child sees this device only.
        threads: the child's threads. Device and threads of a trial's config are set to these.
        log_dir: folder for the child's output, one file per slot.
        memory_limit_bytes: data segment limit of the child (RLIMIT_DATA), none by default.
        hang_s: a trial from which nothing was heard for so long is hung. Preparing the data of a
            study says nothing meanwhile, so this is generous.
        clock: seconds, for grace and hang.

    Raises:
        InputError: there is no such device.
    """

    def __init__(
        self,
        device: str,
        threads: int,
        log_dir: Path | str,
        memory_limit_bytes: int | None = None,
        *,
        hang_s: float = HANG_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.device = device
        self.threads = threads
        self.memory_limit_bytes = memory_limit_bytes
        self.hang_s = hang_s
        self.clock = clock
        self.variables = device_variables(device, threads)
        name = device.replace(":", "-")
        self.log = Path(log_dir) / f"slot-{name}-{os.getpid()}-{next(_serial)}.log"
        self.resident_bytes = 0
        self._level_bytes = 0
        self._child: ChildProcess | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts the child unless it runs, so that its imports are done when a trial comes."""
        if self._child is None or self._child.process.poll() is not None:
            self.close()
            self._child = ChildProcess(self.log, self.variables, self.memory_limit_bytes)

    def run(
        self,
        config: TrialConfig,
        on_message: Callable[[Message], None],
        should_stop: Callable[[], str | None],
        grace_s: float = GRACE_S,
    ) -> TrialResult | TrialFailure:
        """Runs one trial in the child.

        Args:
            config: the trial; its device and threads become the slot's.
            on_message: receives readings at once and progress a few times a second.
            should_stop: asked ten times a second; a reason asks the child to end the trial at a
                step boundary.
            grace_s: how long that may take before the child is killed.

        Raises:
            BaseException: what ``on_message`` or ``should_stop`` raise, and Ctrl-C; the child is
                killed before.
        """
        outcome = self._exchange(Run(config=self._placed(config)), on_message, should_stop, grace_s)
        assert not isinstance(outcome, PlanTiming)
        return outcome

    def plan(self, config: TrialConfig, n_steps: int = 12) -> PlanTiming | TrialFailure:
        """Times a few steps of an architecture in the child."""
        job = Run(config=self._placed(config), plan_steps=n_steps)
        outcome = self._exchange(job, lambda message: None, lambda: None, GRACE_S)
        assert not isinstance(outcome, TrialResult)
        return outcome

    def close(self) -> None:
        """Ends the child and everything it started."""
        if self._child is not None:
            self._child.kill()
            self._child = None
            self._level_bytes = 0
            with contextlib.suppress(OSError):
                if self.log.stat().st_size == 0:
                    self.log.unlink()

    def _placed(self, config: TrialConfig) -> TrialConfig:
        # The child sees one GPU, which is number 0 there.
        device = "cuda:0" if self.device.startswith("cuda") else "cpu"
        return config.model_copy(update={"device": device, "threads": self.threads})

    def _exchange(
        self,
        job: Run,
        on_message: Callable[[Message], None],
        should_stop: Callable[[], str | None],
        grace_s: float,
    ) -> Outcome:
        self.start()
        assert self._child is not None
        try:
            outcome = self._watch(self._child, job, on_message, should_stop, grace_s)
        except BaseException:
            self.close()
            raise
        failed = isinstance(outcome, TrialFailure) and outcome.cause != "error"
        if failed or self._child.process.poll() is not None or self._has_grown():
            self.close()
        return outcome

    def _watch(
        self,
        child: ChildProcess,
        job: Run,
        on_message: Callable[[Message], None],
        should_stop: Callable[[], str | None],
        grace_s: float,
    ) -> Outcome:
        child.mark_log()
        if not child.send(job):
            return child.post_mortem()
        heard = polled = self.clock()
        asked: float | None = None
        while True:
            if select.select([child.lines.connection], [], [], TICK_S)[0]:
                heard = self.clock()
                lines = child.lines.receive()
                if lines is None:
                    return child.post_mortem()
                for line in lines:
                    answer = ANSWERS.validate_json(line)
                    if isinstance(answer, Told):
                        on_message(answer.message)
                        continue
                    self._note_level(answer)
                    if isinstance(answer, Done):
                        return answer.outcome
            now = self.clock()
            if asked is None and now - polled >= TICK_S:
                polled = now
                reason = should_stop()
                if reason is not None:
                    asked = now
                    child.send(Stop(reason=one_line(reason)))
            if asked is not None and now - asked > grace_s:
                return child.hung(f"no step boundary within {grace_s:g} s after a request to stop")
            if now - heard > self.hang_s:
                return child.hung(f"no sign of progress for {self.hang_s:g} s")

    def _note_level(self, answer: Ready | Done) -> None:
        self.resident_bytes = answer.resident_bytes
        if isinstance(answer, Done) and not self._level_bytes:
            self._level_bytes = answer.resident_bytes

    def _has_grown(self) -> bool:
        room = max(GROWTH * self._level_bytes, GROWTH_BYTES)
        return self.resident_bytes > self._level_bytes + room
