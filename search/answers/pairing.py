"""Common seeds: initialisation, data order and masks are those of the seed, not of the stack.

Runs of two architectures with one seed may therefore move together, and a paired interval would be
narrower. Whether they do is reported; the verdicts take the unpaired interval always. That is the
rule fixed before the data: choosing the narrower of two intervals after the fact covers less than
either says, and at the two to eight runs of a study a pair costs half of the degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from search.answers.arms import Arm
from search.answers.intervals import mean_interval, sd, welch

MIN_PAIRS = 3
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Pairing:
    """How runs with common seeds move together on the test split.

    Attributes:
        n: common seeds.
        correlation: Pearson's correlation over them.
        low: lower end of its 95 % interval by Fisher's z; None with fewer than 4 seeds.
        high: upper end.
        width_ratio: width of the paired 95 % interval / that of the unpaired one, same runs.
    """

    n: int
    correlation: float
    low: float | None
    high: float | None
    width_ratio: float

    @property
    def helps(self) -> bool:
        """Whether the paired interval would be narrower."""
        return self.width_ratio < 1.0


def pairing_of(left: Arm, right: Arm) -> Pairing | None:
    """Compares paired and unpaired intervals; None below three common seeds or without noise."""
    seeds = sorted(left.test.keys() & right.test.keys())
    ours, theirs = ([arm.test[seed] for seed in seeds] for arm in (left, right))
    if len(seeds) < MIN_PAIRS or sd(ours) is None or sd(theirs) is None:
        return None
    paired = mean_interval([a - b for a, b in zip(ours, theirs, strict=True)], LEVEL)
    apart = welch(ours, theirs, LEVEL)
    if paired.low is None or paired.high is None or apart.low is None or apart.high is None:
        return None
    correlation = float(np.corrcoef(ours, theirs)[0, 1])
    low = high = None
    if len(seeds) >= 4 and abs(correlation) < 1:
        z, reach = math.atanh(correlation), stats.norm.ppf((1 + LEVEL) / 2)
        reach = float(reach) / math.sqrt(len(seeds) - 3)
        low, high = math.tanh(z - reach), math.tanh(z + reach)
    ratio = (paired.high - paired.low) / (apart.high - apart.low)
    return Pairing(len(seeds), correlation, low, high, ratio)
