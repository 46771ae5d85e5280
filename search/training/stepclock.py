"""Times optimiser steps without waiting for the device."""

from __future__ import annotations

import itertools
import time
from typing import Any

import torch


class StepClock:
    """Takes a mark after each step; the difference of neighbouring marks is a step's time.

    On a GPU the marks are events in its queue, read when the training is over, so that timing
    never synchronises. A pause (an evaluation) breaks the chain.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._marks: list[list[Any]] = []

    def resume(self) -> None:
        """Starts a chain of steps now."""
        self._marks.append([self._mark()])

    def tick(self) -> None:
        """A step is done."""
        self._marks[-1].append(self._mark())

    def seconds(self, *, skip: int = 0) -> list[float]:
        """Times of all steps but the first ``skip``, which pay for warming up; waits for a GPU."""
        if self._on_gpu:
            torch.cuda.synchronize()
        times = [
            self._between(first, second)
            for chain in self._marks
            for first, second in itertools.pairwise(chain)
        ]
        return times[skip:]

    def _mark(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _between(self, first: Any, second: Any) -> float:
        if self._on_gpu:
            return float(first.elapsed_time(second)) / 1000
        return float(second - first)
