"""Common seeds: initialisation, data order and masks are those of the seed, not of the stack.

Runs of two architectures with one seed may therefore move together, and a paired interval is then
much narrower; where they do not, pairs cost half of the degrees of freedom. The rule is fixed
before the data: the interval is paired where the correlation of the common seeds is above 0 in a
one-sided test at 5 %, and unpaired otherwise. It covers as it says for any correlation that is not
negative, unlike the narrower of the two.
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
PAIRED_BELOW = 0.05


@dataclass(frozen=True, slots=True)
class Pairing:
    """How runs with common seeds move together on the test split.

    Attributes:
        differences: left - right, by rising seed.
        correlation: Pearson's correlation over the common seeds.
        low: lower end of its 95 % interval by Fisher's z; None with fewer than 4 seeds.
        high: upper end.
        p_value: one-sided, of no correlation.
        width_ratio: width of the paired 95 % interval / that of the unpaired one, same runs.
    """

    differences: tuple[float, ...]
    correlation: float
    low: float | None
    high: float | None
    p_value: float
    width_ratio: float

    @property
    def n(self) -> int:
        """Number of common seeds."""
        return len(self.differences)

    @property
    def is_used(self) -> bool:
        """Whether the contrast's interval is the paired one."""
        return self.p_value <= PAIRED_BELOW

    @property
    def sd(self) -> float:
        """SD of the differences."""
        return float(np.std(self.differences, ddof=1))


def pairing_of(left: Arm, right: Arm) -> Pairing | None:
    """Compares paired and unpaired intervals; None below three common seeds or without noise."""
    seeds = sorted(left.test.keys() & right.test.keys())
    ours, theirs = ([arm.test[seed] for seed in seeds] for arm in (left, right))
    if len(seeds) < MIN_PAIRS or sd(ours) is None or sd(theirs) is None:
        return None
    differences = tuple(a - b for a, b in zip(ours, theirs, strict=True))
    paired, apart = mean_interval(differences, LEVEL), welch(ours, theirs, LEVEL)
    if paired.low is None or paired.high is None or apart.low is None or apart.high is None:
        return None
    found = stats.pearsonr(ours, theirs, alternative="greater")
    correlation = float(found.statistic)
    low = high = None
    if len(seeds) >= 4 and abs(correlation) < 1:
        z, reach = math.atanh(correlation), float(stats.norm.ppf((1 + LEVEL) / 2))
        reach /= math.sqrt(len(seeds) - 3)
        low, high = math.tanh(z - reach), math.tanh(z + reach)
    ratio = (paired.high - paired.low) / (apart.high - apart.low)
    return Pairing(differences, correlation, low, high, float(found.pvalue), ratio)
