"""Times short blocks of the shared convolution and of the filters by token against long ones.

    python -m benchmarks.blocks [--threads N] [--rounds N]

Why `mixers.toeplitz.tokens_of_block` says what it says: training passes through blocks of 32 tokens
in turn with the same through blocks of 64. The table is quoted in docs/decisions.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from functools import partial
from unittest import mock

import torch
from torch import Tensor

from mixers import toeplitz
from search.timing.stopwatch import Stopwatch, interleaved, pass_of

BLOCKS = SHORT, LONG = 32, 64
TAPS = (8, 31, 63, 128, 256, 512)
SHAPES = ((768, 2, 512), (768, 1, 2048), (256, 2, 512), (256, 1, 2048))
"""Features, batch and tokens."""
FILTERS, HEADS = 16, 4
Call = Callable[[], object]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"float32, {options.threads} thread(s), load {os.getloadavg()[0]:.1f}\n")
    print(f"| time with blocks of {SHORT} : of {LONG} | {' | '.join(f'{k} taps' for k in TAPS)} |")
    print(f"|---|{'---|' * len(TAPS)}")
    for name, calls in (("filters shared", shared), ("filters by token", by_token)):
        for shape in SHAPES:
            shares = [share(calls(*shape, taps), options.rounds) for taps in TAPS]
            print(f"| {name}, {shape[1]} x {shape[2]}, width {shape[0]} | {' | '.join(shares)} |")


def share(calls: dict[int, Call], rounds: int) -> str:
    """The median over the rounds of the short blocks' time over the long ones'."""
    seconds = interleaved(
        {str(rows): call for rows, call in calls.items()},
        Stopwatch(torch.device("cpu"), "wall"),
        rounds=rounds,
    )
    pairs = zip(seconds[str(SHORT)], seconds[str(LONG)], strict=True)
    return f"{statistics.median(short / long for short, long in pairs):.2f}"


def shared(d_model: int, batch: int, seq_len: int, taps: int) -> dict[int, Call]:
    """Training passes through the gated convolution of `sepconv`, by tokens of a block."""
    filters = torch.randn(FILTERS, taps, requires_grad=True)
    x = torch.randn(2 * d_model, batch, seq_len)

    def mixed(x: Tensor, rows: int) -> Tensor:
        return toeplitz.by_blocks(x, filters, (taps - 1) // 2, rows, gated=True)

    return {rows: pass_of(partial(mixed, rows=rows), x, [filters], "training") for rows in BLOCKS}


def by_token(d_model: int, batch: int, seq_len: int, taps: int) -> dict[int, Call]:
    """Training passes through the convolution of `dynamicconv`, by tokens of a block."""
    weights = torch.randn(batch, seq_len, HEADS, taps).softmax(-1).requires_grad_()
    x = torch.randn(batch, seq_len, d_model)

    def mixed(x: Tensor, rows: int) -> Tensor:
        with mock.patch.object(toeplitz, "tokens_of_block", return_value=rows):
            return toeplitz.convolve_each(x, weights, before=(taps - 1) // 2)

    return {rows: pass_of(partial(mixed, rows=rows), x, [weights], "training") for rows in BLOCKS}


if __name__ == "__main__":
    main()
