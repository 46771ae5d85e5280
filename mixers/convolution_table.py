"""Which back end of `mixers.convolution` runs where; `python -m benchmarks.mixers --retune`.

A back end gives way only to one that took less than 0.9 of its time in three of four rounds.
"""

from typing import Literal

Backend = Literal["direct", "band", "blocks", "fft"]

KERNEL_SIZES = (8, 32, 128, 512)
SEQ_LENS = (32, 128, 512, 2048)
SHARED = (1, 8, 48)

TABLE: dict[str, dict[str, tuple[tuple[tuple[Backend, ...], ...], ...]]] = {
    "cpu": {
        "float32": (
            (
                ("band", "direct", "blocks", "blocks"),
                ("band", "blocks", "blocks", "blocks"),
                ("band", "fft", "fft", "fft"),
                ("band", "fft", "fft", "fft"),
            ),
            (
                ("band", "direct", "blocks", "blocks"),
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "fft", "blocks"),
                ("band", "band", "fft", "fft"),
            ),
            (
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "fft", "fft"),
            ),
        ),
        "bfloat16": (
            (
                ("band", "direct", "blocks", "blocks"),
                ("band", "blocks", "blocks", "blocks"),
                ("band", "fft", "fft", "blocks"),
                ("band", "fft", "fft", "fft"),
            ),
            (
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "fft", "fft"),
            ),
            (
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "blocks", "blocks"),
                ("band", "band", "fft", "blocks"),
            ),
        ),
    }
}
"""device -> dtype -> by channels per filter -> by taps -> by tokens."""
