"""Variance of repeats: per architecture, pooled only where the architectures agree.

Architectures differ in noise by an order of magnitude, and few repeats cannot show it: pooling two
to four runs each after a test of equal variances makes 95 % intervals that cover as little as
84 to 92 %. Verdicts therefore never pool; the pooled SD is a summary, and only of what agrees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

POOLED_ABOVE = 0.25
ENOUGH_DF = 6


@dataclass(frozen=True, slots=True)
class Pool:
    """Pooled SD of several architectures' repeats.

    Attributes:
        sd: sqrt(sum df s^2 / sum df); None where nothing varies or they do not agree.
        df: degrees of freedom, the sum of runs - 1.
        p_value: Bartlett's test of equal variances; None where it says nothing (fewer than two
            architectures with repeats that vary).
    """

    sd: float | None
    df: int
    p_value: float | None

    @property
    def agrees(self) -> bool:
        """Whether the architectures' variances may be taken for one."""
        return self.p_value is None or self.p_value > POOLED_ABOVE


def pooled(groups: Sequence[Sequence[float]]) -> Pool:
    """Pools repeats where Bartlett's test (1937) does not speak against equal variances.

    The test is held to p > 0.25, far from 0.05, because a difference that matters is easily missed
    with few runs.

    Args:
        groups: values of each architecture; those with fewer than two add nothing.
    """
    repeated = [np.asarray(group, dtype=np.float64) for group in groups if len(group) >= 2]
    df = sum(len(group) - 1 for group in repeated)
    squares = math.fsum(float(np.var(g, ddof=1)) * (len(g) - 1) for g in repeated)
    varying = [group for group in repeated if np.ptp(group) > 0]
    p_value = float(stats.bartlett(*varying).pvalue) if len(varying) >= 2 else None
    found = Pool(math.sqrt(squares / df) if df and squares > 0 else None, df, p_value)
    return found if found.agrees else Pool(None, df, p_value)


def few_words(df: float) -> str:
    """Says so where an SD rests on fewer than 6 degrees of freedom; else nothing."""
    return "" if df >= ENOUGH_DF else f"fewer than {ENOUGH_DF} degrees of freedom"
