"""Which back end of `mixers.convolution` runs where; `python -m benchmarks.mixers --retune`."""

from typing import Literal

Backend = Literal["direct", "band", "blocks", "fft"]

KERNEL_SIZES = (8, 32, 128, 512)
SEQ_LENS = (32, 128, 512, 2048)
SHARED = (1, 8, 48)

TABLE: dict[str, dict[str, tuple[tuple[tuple[Backend, ...], ...], ...]]] = {
    "cpu": {
        "float32": ((("band", "band", "blocks", "blocks"),) * 4,) * 3,
        "bfloat16": ((("band", "band", "blocks", "blocks"),) * 4,) * 3,
    },
}
"""device -> dtype -> by channels per filter -> by taps -> by tokens."""
