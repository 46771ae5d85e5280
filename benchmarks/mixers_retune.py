"""Writes the table that says which back end of the shared convolution runs where.

A cell keeps the back end that the table has unless another is clearly faster: in three of four
rounds it must take less than 0.9 of the time of the one that stands, training passes, all back ends
in turn. Back ends within noise of each other would otherwise change places from one call to the
next, and with them the last bits of every training. A device that is not in the table starts from
products with band matrices.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
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
CLEARLY = 0.9
"""A back end replaces the one that stands where it takes less than this share of its time."""

HEADER = '''\
"""Which back end of `mixers.convolution` runs where; `python -m benchmarks.mixers --retune`.

A back end gives way only to one that took less than {clearly} of its time in three of four rounds.
"""

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
    header = HEADER.format(clearly=CLEARLY)
    FILE.write_text(f"{header}{lines}\nTABLE: {kind} = {table!r}\n{FOOTER}", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", str(FILE)], check=True)


def measured(device: torch.device, dtype: torch.dtype, stopwatch: Stopwatch, rounds: int) -> Cells:
    """The back end of every cell."""
    stand = standing(device, dtype)
    return tuple(
        tuple(
            tuple(
                settled(
                    stand[i][j][k],
                    times(device, dtype, stopwatch, rounds, shared, taps, seq_len),
                    f"{dtype} shared {shared} taps {taps} tokens {seq_len}",
                )
                for k, seq_len in enumerate(SEQ_LENS)
            )
            for j, taps in enumerate(KERNEL_SIZES)
        )
        for i, shared in enumerate(SHARED)
    )


def standing(device: torch.device, dtype: torch.dtype) -> Cells:
    """The table as it is, or products everywhere for a device that nobody measured."""
    if device.type in TABLE:
        return TABLE[device.type][str(dtype).removeprefix("torch.")]
    row: tuple[Backend, ...] = tuple("band" if n <= LONGEST_BAND else "blocks" for n in SEQ_LENS)
    return ((row,) * len(KERNEL_SIZES),) * len(SHARED)


def times(
    device: torch.device,
    dtype: torch.dtype,
    stopwatch: Stopwatch,
    rounds: int,
    shared: int,
    taps: int,
    seq_len: int,
) -> dict[Backend, list[float]]:
    """Seconds of a training pass through each back end, round by round."""
    torch.manual_seed(0)
    x = torch.randn(2 * CHANNELS, max(1, TOKENS // seq_len), seq_len).to(device, dtype)
    filters = torch.randn(CHANNELS // shared, taps).to(device, dtype).requires_grad_()
    calls = {}
    for backend in candidates(seq_len):

        def convolved(x: Tensor, backend: Backend = backend) -> Tensor:
            return convolve(x, filters, before=(taps - 1) // 2, backend=backend, gated=True)

        calls[backend] = pass_of(convolved, x, [filters], "training")
    seconds = interleaved(calls, stopwatch, rounds=rounds)
    return {backend: seconds[backend] for backend in calls}


def settled(stands: Backend, seconds: Mapping[Backend, list[float]], cell: str) -> Backend:
    """The back end of a cell: the one that stands, or the fastest if clearly faster; says so."""
    medians = {backend: statistics.median(values) for backend, values in seconds.items()}
    best = min(medians, key=lambda backend: medians[backend])
    pairs = zip(seconds[best], seconds[stands], strict=True)
    shares = sorted(new / old for new, old in pairs)
    chosen = best if shares[3 * (len(shares) - 1) // 4] < CLEARLY else stands
    shown = "  ".join(f"{name} {1e3 * value:.2f}" for name, value in medians.items())
    note = "" if chosen == stands else f", was {stands}"
    print(f"{cell}: {chosen}{note}  ({shown} ms)", flush=True)
    return chosen


def candidates(seq_len: int) -> Iterator[Backend]:
    """The back ends that may run at a length."""
    for backend in BACKENDS:
        if backend != "band" or seq_len <= LONGEST_BAND:
            yield backend
