"""Measured time with its spread, on the device at hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from search.messages import Timing

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

WARM_UP = 3
REPEATS = 20


def time_calls(
    call: Callable[[], object],
    *,
    synchronize: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
    warm_up: int = WARM_UP,
    repeats: int = REPEATS,
) -> list[float]:
    """Seconds of each of ``repeats`` calls, after ``warm_up`` calls that are not counted.

    The clock is read with the device idle: work queued before a call is not counted, work that the
    call queued is.

    Args:
        call: what is timed.
        synchronize: waits until the device has done what it was given.
        clock: a clock in seconds.
        warm_up: first calls to drop (caches, memory pools, kernel selection).
        repeats: calls to time, at least 1.
    """
    for _ in range(warm_up):
        call()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        call()
        synchronize()
        samples.append(clock() - start)
    return samples


def time_latency(
    model: nn.Module,
    inputs: Tensor,
    mask: Tensor | None = None,
    *,
    warm_up: int = WARM_UP,
    repeats: int = REPEATS,
) -> Timing:
    """Times the forward pass of a model in evaluation mode, without gradients.

    The model's mode is restored. Device and dtype are the model's; under autocast the dtype is
    autocast's. The device should have nothing else to do.

    Args:
        model: called as ``model(inputs)``, or ``model(inputs, mask)`` with a mask.
        inputs: token ids (B, N) or embeddings (B, N, D), on the model's device.
        mask: (B, N) bool, True = real token.
        warm_up: first calls to drop.
        repeats: calls to time.
    """
    import torch

    parameter = next(model.parameters(), None)
    device = inputs.device if parameter is None else parameter.device
    dtype = torch.get_default_dtype() if parameter is None else parameter.dtype
    if torch.is_autocast_enabled(device.type):
        dtype = torch.get_autocast_dtype(device.type)
    arguments = (inputs,) if mask is None else (inputs, mask)
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            samples = time_calls(
                lambda: model(*arguments),
                synchronize=synchronizer(device),
                warm_up=warm_up,
                repeats=repeats,
            )
    finally:
        for module, mode in modes:
            module.training = mode
    return Timing.of(
        samples,
        batch_size=inputs.shape[0],
        seq_len=inputs.shape[1],
        device=device_name(device),
        dtype=str(dtype).removeprefix("torch."),
    )


def synchronizer(device: torch.device) -> Callable[[], object]:
    """A function that waits for a device; for a CPU there is nothing to wait for."""
    import torch

    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    if device.type == "mps":
        return torch.mps.synchronize
    return lambda: None


def device_name(device: torch.device) -> str:
    """What a device is called beside a number: its type, and the model of a CUDA device."""
    import torch

    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return device.type
