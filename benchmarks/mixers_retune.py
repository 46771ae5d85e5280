"""Writes the table that says which back end of the shared convolution runs where."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from mixers import convolution_table
from mixers.convolution import BACKENDS, LONGEST_BAND, Backend, convolve
from mixers.convolution_table import KERNEL_SIZES, SEQ_LENS, SHARED, TABLE
from search.timing.stopwatch import Clock, Stopwatch, interleaved, pass_of

FILE = Path(convolution_table.__file__)
CHANNELS = 192
"""Features that are convolved; a multiple of every number of channels per filter."""
TOKENS = 1024
"""Tokens of a batch of short inputs."""
CLEARLY = 0.95
"""A back end replaces the products only where it takes less than this share of their time."""

HEADER = '''\
"""Which back end of `mixers.convolution` runs where; `python -m benchmarks.mixers --retune`."""

from typing import Literal

Backend = Literal["direct", "band", "blocks", "fft"]

'''
FOOTER = '''\
"""device -> dtype -> by channels per filter -> by taps -> by tokens."""
'''
Cells = tuple[tuple[tuple[Backend, ...], ...], ...]


def retune(device: torch.device, clock: Clock, rounds: int) -> None:
    """Measures this device's part of the table and writes the file; other devices' stay."""
    table = dict(TABLE)
    table[device.type] = {
        name: measured(device, dtype, Stopwatch(device, clock), rounds)
        for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16))
    }
    sizes = {"KERNEL_SIZES": KERNEL_SIZES, "SEQ_LENS": SEQ_LENS, "SHARED": SHARED}
    lines = "".join(f"{name} = {values!r}\n" for name, values in sizes.items())
    kind = "dict[str, dict[str, tuple[tuple[tuple[Backend, ...], ...], ...]]]"
    FILE.write_text(f"{HEADER}{lines}\nTABLE: {kind} = {table!r}\n{FOOTER}", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", str(FILE)], check=True)


def measured(device: torch.device, dtype: torch.dtype, stopwatch: Stopwatch, rounds: int) -> Cells:
    """The fastest back end of every cell."""
    return tuple(
        tuple(
            tuple(fastest(device, dtype, stopwatch, rounds, shared, taps, n) for n in SEQ_LENS)
            for taps in KERNEL_SIZES
        )
        for shared in SHARED
    )


def fastest(
    device: torch.device,
    dtype: torch.dtype,
    stopwatch: Stopwatch,
    rounds: int,
    shared: int,
    taps: int,
    seq_len: int,
) -> Backend:
    """Times a training pass through each back end; prints a line."""
    torch.manual_seed(0)
    x = torch.randn(2 * CHANNELS, max(1, TOKENS // seq_len), seq_len).to(device, dtype)
    filters = torch.randn(CHANNELS // shared, taps).to(device, dtype).requires_grad_()
    calls = {}
    for backend in candidates(seq_len):

        def convolved(x: Tensor, backend: Backend = backend) -> Tensor:
            return convolve(x, filters, before=(taps - 1) // 2, backend=backend, gated=True)

        calls[backend] = pass_of(convolved, x, [filters], "training")
    seconds = interleaved(calls, stopwatch, rounds=rounds)
    medians = {backend: statistics.median(seconds[backend]) for backend in candidates(seq_len)}
    usual: Backend = "band" if "band" in medians else "blocks"
    best = min(medians, key=lambda backend: medians[backend])
    chosen = best if medians[best] < CLEARLY * medians[usual] else usual
    shown = "  ".join(f"{name} {1e3 * value:.2f}" for name, value in medians.items())
    cell = f"{dtype} shared {shared} taps {taps} tokens {seq_len}"
    print(f"{cell}: {chosen}  ({shown} ms)", flush=True)
    return chosen


def candidates(seq_len: int) -> Iterator[Backend]:
    """The back ends that may run at a length."""
    for backend in BACKENDS:
        if backend != "band" or seq_len <= LONGEST_BAND:
            yield backend
