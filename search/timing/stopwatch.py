"""Times several things in turn, so that what disturbs one disturbs all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Clock = Literal["wall", "processor"]
Pass = Literal["forward", "training"]
"""A forward pass alone without gradients, or with the backward pass."""


class Stopwatch:
    """Seconds of a call on a device.

    On a CUDA device they are those between two events on the stream. On a CPU they are wall time,
    or the processor time of this process: with one thread that is what the call costs by itself,
    however busy the machine is; with more, idle threads that wait for others count too.

    Args:
        device: where the work runs.
        clock: what is read on a CPU.
    """

    def __init__(self, device: torch.device, clock: Clock = "wall") -> None:
        self.device = device
        self.clock = time.process_time if clock == "processor" else time.perf_counter

    def __call__(self, call: Callable[[], object]) -> float:
        """Seconds of one call."""
        if self.device.type == "cuda":
            return self.between_events(call)
        start = self.clock()
        call()
        return self.clock() - start

    def between_events(self, call: Callable[[], object]) -> float:
        """Seconds between two CUDA events around a call."""
        import torch

        event: Any = torch.cuda.Event
        start, end = event(enable_timing=True), event(enable_timing=True)
        torch.cuda.synchronize(self.device)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize(self.device)
        milliseconds: float = start.elapsed_time(end)
        return milliseconds / 1e3


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    stopwatch: Callable[[Callable[[], object]], float],
    *,
    rounds: int,
    warm_up: int = 1,
) -> dict[str, list[float]]:
    """Seconds of each call in each of ``rounds`` rounds; every round makes every call once.

    Every other round goes backwards, so that no call always follows the same one.

    Args:
        calls: what is timed, by name.
        stopwatch: gives the seconds of one call.
        rounds: rounds that count, at least 1.
        warm_up: rounds before them that do not.
    """
    order = list(calls)
    seconds: dict[str, list[float]] = {name: [] for name in order}
    for turn in range(warm_up + rounds):
        for name in order if turn % 2 else reversed(order):
            spent = stopwatch(calls[name])
            if turn >= warm_up:
                seconds[name].append(spent)
    return seconds


def pass_of(
    function: Callable[[Tensor], Tensor], x: Tensor, parameters: list[Tensor], kind: Pass
) -> Callable[[], object]:
    """Returns a call of ``function(x)`` that is ready to be timed.

    Args:
        function: from a tensor to a tensor.
        x: its input.
        parameters: what else gets a gradient.
        kind: a forward pass alone, or with the backward pass of a fixed gradient.
    """
    import torch

    if kind == "forward":

        def forward() -> None:
            with torch.inference_mode():
                function(x)

        return forward
    inputs = [x.detach().requires_grad_(), *parameters]
    gradient = torch.randn_like(function(inputs[0]))

    def training() -> None:
        out = function(inputs[0])
        if out.requires_grad:
            torch.autograd.grad(out, inputs, gradient, allow_unused=True)

    return training
