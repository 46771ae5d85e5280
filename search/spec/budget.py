"""What a run may spend: a number of trials, time, or training FLOPs.

A budget is a property of the call, not of the study: the same study goes on under a larger one.
The arithmetic is on counts that the store reads inside the transaction of a claim, so it holds
with any number of workers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from search.errors import InputError
from search.rows import Counts

Unit = Literal["trials", "seconds", "flops"]

EXAMPLES = "20 (trials), 30m or 2h (time), 3e15flop (training FLOPs)"
SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
TRAINING_TO_FORWARD_FLOPS = 3  # the backward pass costs two forward passes

_TIME = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_TIME_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_FLOPS = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d+)?)flops?")


@dataclass(frozen=True)
class Budget:
    """An amount of one unit; ``amount`` is positive and finite."""

    unit: Unit
    amount: float

    @classmethod
    def parse(cls, text: str | int) -> Budget:
        """Reads ``20``, ``90s``, ``30m``, ``2h``, ``1h30m`` or ``3e15flop``.

        Raises:
            InputError: the text is none of these, or the amount is not positive.
        """
        if isinstance(text, bool) or not isinstance(text, int | str):
            raise InputError(f"budget {text!r}: expected text such as {EXAMPLES}")
        compact = str(text).strip().lower().replace(" ", "")
        budget = cls._read(compact)
        if budget is None:
            raise InputError(f"budget '{text}' is not understood; write {EXAMPLES}")
        if not (0 < budget.amount < math.inf):
            raise InputError(f"budget '{text}' allows nothing; write {EXAMPLES}")
        return budget

    @classmethod
    def _read(cls, compact: str) -> Budget | None:
        if re.fullmatch(r"\d{1,18}", compact):
            return cls("trials", int(compact))
        if _TIME.fullmatch(compact):
            parts = _TIME_PART.findall(compact)
            return cls("seconds", sum(float(n) * SECONDS_PER_UNIT[u] for n, u in parts))
        if match := _FLOPS.fullmatch(compact):
            return cls("flops", float(match[1]))
        return None

    def spent(self, counts: Counts) -> float:
        """Returns what the counts amount to in this budget's unit."""
        if self.unit == "trials":
            return counts.started
        return counts.busy_s if self.unit == "seconds" else counts.flops

    def is_used_up(self, counts: Counts) -> bool:
        """Says whether another trial may not start."""
        return self.spent(counts) >= self.amount

    @property
    def most_flops(self) -> float | None:
        """What may be spent and reserved in FLOPs; None for a budget in another unit."""
        return self.amount if self.unit == "flops" else None

    @property
    def text(self) -> str:
        """The budget as `parse` reads it."""
        if self.unit == "trials":
            return str(int(self.amount))
        return f"{self.amount:.3f}s" if self.unit == "seconds" else f"{self.amount!r}flop"

    def __str__(self) -> str:
        return self.words(self.amount)

    def words(self, amount: float) -> str:
        """Writes an amount of this unit for people."""
        if self.unit == "trials":
            return f"{int(amount)} trial{'' if int(amount) == 1 else 's'}"
        if self.unit == "flops":
            return f"{amount:.3g} FLOPs"
        return duration_words(amount)


def duration_words(seconds: float) -> str:
    """Writes a duration for people: ``45 s``, ``12 min``, ``1 h 30 min``."""
    if seconds < 90:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def training_flops(forward_flops: int, *, steps: int, batch_size: int) -> int:
    """Returns the FLOPs of a training: 3 x forward FLOPs of a sequence x sequences."""
    return TRAINING_TO_FORWARD_FLOPS * forward_flops * steps * batch_size
