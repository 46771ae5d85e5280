"""Interval arithmetic of the answer: Welch-Satterthwaite, paired t, rank correlation, sample sizes.

Pure functions on plain floats. No function here returns an interval of zero width: where the data
do not measure their own noise, the ends are None and the reason is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

TOO_FEW = "too few runs"
IDENTICAL = "identical repeats"
POWER = 0.8
RESAMPLES = 1000
MAX_RUNS = 100_000
MOST_DF_PER_RUN_DF = 2.0


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval, or with the reason why it has none.

    ``low``, ``high`` and ``df`` are all None or all set; ``reason`` is empty when they are set.
    """

    estimate: float
    level: float
    low: float | None = None
    high: float | None = None
    df: float | None = None
    reason: str = ""

    def p_value(self, border: float) -> float | None:
        """Two-sided p-value of the estimated quantity being ``border``; None without ends.

        For t intervals only, which lie evenly around their estimate.
        """
        if self.low is None or self.high is None or self.df is None:
            return None
        quantile = float(stats.t.ppf((1.0 + self.level) / 2.0, self.df))
        error = (self.high - self.low) / 2.0 / quantile
        return float(2.0 * stats.t.sf(abs(self.estimate - border) / error, self.df))


def sd(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1); None for fewer than two values or identical ones."""
    if len(values) < 2:
        return None
    spread = float(np.std(np.asarray(values, dtype=np.float64), ddof=1))
    return spread if spread > _resolution(values) else None


@dataclass(frozen=True, slots=True)
class Part:
    """An independent part of a difference's sampling variance, with its degrees of freedom."""

    variance: float
    df: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of means with the parts of its variance; without parts, why it has none.

    ``most_df`` bounds the degrees of freedom, whatever the parts seem to allow.
    """

    estimate: float
    parts: tuple[Part, ...] = ()
    reason: str = ""
    most_df: float = math.inf

    @property
    def error(self) -> float:
        """Standard error; 0 without parts."""
        return math.sqrt(math.fsum(part.variance for part in self.parts))

    @property
    def df(self) -> float:
        """Satterthwaite's degrees of freedom (1946): (sum v)^2 / sum v^2 / df."""
        squares = math.fsum(part.variance**2 / part.df for part in self.parts)
        found = math.fsum(part.variance for part in self.parts) ** 2 / squares
        return min(found, self.most_df)

    def interval(self, level: float) -> Interval:
        """Two-sided t interval."""
        if not self.parts:
            return Interval(self.estimate, level, reason=self.reason)
        return _around(self.estimate, self.error, self.df, level)

    def p_value(self, border: float) -> float | None:
        """Two-sided p-value of the difference being ``border``; None without parts."""
        if not self.parts:
            return None
        return float(2.0 * stats.t.sf(abs(self.estimate - border) / self.error, self.df))


def difference(left: Sequence[float], right: Sequence[float], *others: Part) -> Difference:
    """mean(left) - mean(right) with unequal variances (Welch 1947), and other parts of the error.

    Few runs look quiet by luck, and then a well-known other part would lend the sum many degrees of
    freedom: 95 % intervals of two runs a side would cover as little as 89 %. The sum has therefore
    at most twice those of all runs.

    Args:
        left: one value per run, at least one.
        right: one value per run, at least one.
        others: further independent parts, such as the evaluation error; parts of no variance add
            nothing.
    """
    estimate = _mean(left) - _mean(right)
    if min(len(left), len(right)) < 2:
        return Difference(estimate, reason=TOO_FEW)
    u, v = (float(np.var(np.asarray(x, dtype=np.float64), ddof=1)) / len(x) for x in (left, right))
    if math.sqrt(u + v) <= _resolution([*left, *right]):
        return Difference(estimate, reason=IDENTICAL)
    seeds = Part(u, len(left) - 1.0), Part(v, len(right) - 1.0)
    most_df = MOST_DF_PER_RUN_DF * (len(left) + len(right) - 2)
    parts = (*seeds, *(part for part in others if part.variance > 0))
    return Difference(estimate, parts, most_df=most_df)


def paired_difference(differences: Sequence[float], *others: Part) -> Difference:
    """The mean of differences of runs with common seeds, and other parts of the error."""
    estimate = _mean(differences)
    if len(differences) < 2:
        return Difference(estimate, reason=TOO_FEW)
    spread = sd(differences)
    if spread is None:
        return Difference(estimate, reason=IDENTICAL)
    df = len(differences) - 1.0
    parts = (Part(spread**2 / len(differences), df), *(p for p in others if p.variance > 0))
    return Difference(estimate, parts, most_df=MOST_DF_PER_RUN_DF * df)


def welch(left: Sequence[float], right: Sequence[float], level: float) -> Interval:
    """Welch's interval of mean(left) - mean(right), of the runs' noise alone.

    Args:
        left: one value per run, at least one.
        right: one value per run, at least one.
        level: two-sided confidence level, e.g. 0.95.
    """
    return difference(left, right).interval(level)


def mean_interval(differences: Sequence[float], level: float) -> Interval:
    """Student's t interval of the mean of independent differences (at least one)."""
    estimate = _mean(differences)
    if len(differences) < 2:
        return Interval(estimate, level, reason=TOO_FEW)
    spread = sd(differences)
    if spread is None:
        return Interval(estimate, level, reason=IDENTICAL)
    return _around(estimate, spread / math.sqrt(len(differences)), len(differences) - 1.0, level)


def known_sd_interval(difference: float, sd_of_one: float, df: float, level: float) -> Interval:
    """Interval of a difference of two single runs whose repeat SD was measured elsewhere."""
    return _around(difference, sd_of_one * math.sqrt(2.0), df, level)


def runs_needed(
    sd_left: float, sd_right: float, margin: float, level: float, floor: float = 0.0
) -> int | None:
    """Smallest n per arm with which an interval clears a margin four times in five.

    Smallest n >= 2 with (t(1 - a/2, df) + t(0.8, df))^2 ((s^2 + r^2) / n + f^2) <= margin^2, where
    a = 1 - level and df is Satterthwaite's at equal n. With many runs, equal SDs, no floor and
    level 0.90 (one-sided 5 %) this is the familiar 12.4 (sigma / margin)^2.

    Args:
        sd_left: repeat SD of one architecture.
        sd_right: repeat SD of the other.
        margin: distance from the estimate to the border.
        level: two-sided confidence level.
        floor: standard error f that no number of runs lowers: the evaluation error.

    Returns:
        Runs per arm; None where the floor alone is too large, or more than 100,000 are needed.
    """
    variance = sd_left**2 + sd_right**2
    if variance == 0:
        return 2
    df_per_run = variance**2 / (sd_left**4 + sd_right**4)
    tail = 1.0 - (1.0 - level) / 2.0
    z = float(stats.norm.ppf(tail) + stats.norm.ppf(POWER))
    room = (margin / z) ** 2 - floor**2
    if room <= 0:
        return None

    def clears(n: int) -> bool:
        df = df_per_run * (n - 1)
        t = float(stats.t.ppf(tail, df) + stats.t.ppf(POWER, df))
        return t**2 * (variance / n + floor**2) <= margin**2

    too_few = max(2, math.ceil(min(MAX_RUNS, variance / room))) - 1  # fewer than normal theory's
    enough = too_few + 1
    while not clears(enough):
        too_few, enough = enough, 2 * enough
        if too_few >= MAX_RUNS:
            return None
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if clears(middle) else (middle, enough)
    return enough if enough <= MAX_RUNS else None


def provable(sd: float, n: int, level: float) -> float:
    """Smallest margin that ``n`` >= 2 runs per arm of equal SD clear four times in five.

    (t(1 - a/2, df) + t(0.8, df)) sd sqrt(2 / n) with df = 2 (n - 1): `runs_needed` turned round.
    """
    df = 2.0 * (n - 1)
    tail = 1.0 - (1.0 - level) / 2.0
    return float(stats.t.ppf(tail, df) + stats.t.ppf(POWER, df)) * sd * math.sqrt(2.0 / n)


def rank_correlation(
    x: Sequence[float], y: Sequence[float], *, seed: int = 0, level: float = 0.95
) -> Interval | None:
    """Spearman's correlation with a percentile bootstrap interval; None if x or y is constant.

    A bootstrap of a (nearly) perfect order collapses to a point; the interval is then widened to
    that of Fisher's z with the standard error of Bonett and Wright (2000), taken at the largest
    correlation below a perfect one, so it never has zero width. Above 1,000 points, where both
    agree, Fisher's z alone is used.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = len(a)
    if n < 4 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    rho = float(np.clip(_row_correlations(a[None], b[None])[0], -1.0, 1.0))
    inner = min(abs(rho), 1.0 - 12.0 / (n * (n * n - 1.0)))
    z = math.copysign(math.atanh(inner), rho)
    reach = float(stats.norm.ppf((1 + level) / 2)) * math.sqrt((1 + inner**2 / 2) / (n - 3))
    low, high = math.tanh(z - reach), math.tanh(z + reach)
    if n <= RESAMPLES:
        picks = np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n))
        samples = _row_correlations(a[picks], b[picks])
        samples = samples[np.isfinite(samples)]
        ends = [float(end) for end in np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])]
        if ends[1] - ends[0] > 1e-6 and abs(rho) <= inner:
            low, high = ends
    return Interval(rho, level, min(low, rho), max(high, rho), float(n - 2))


def _row_correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Spearman's correlation of each row pair; NaN where a row is constant."""
    ranks_a = stats.rankdata(a, axis=1)
    ranks_b = stats.rankdata(b, axis=1)
    ranks_a -= ranks_a.mean(axis=1, keepdims=True)
    ranks_b -= ranks_b.mean(axis=1, keepdims=True)
    scale = np.sqrt((ranks_a**2).sum(axis=1) * (ranks_b**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        result: np.ndarray = (ranks_a * ranks_b).sum(axis=1) / scale
    return result


def _around(estimate: float, error: float, df: float, level: float) -> Interval:
    half = float(stats.t.ppf(1.0 - (1.0 - level) / 2.0, df)) * error
    return Interval(estimate, level, estimate - half, estimate + half, df)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _resolution(values: Sequence[float]) -> float:
    """Spread below which values are equal up to rounding."""
    return 1e-12 * max(abs(value) for value in values)
