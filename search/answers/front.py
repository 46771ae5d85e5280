"""Fronts of values with noise: who is beaten by nobody, and in how many of the ways it may be.

Pure functions on arrays. A value's noise is its own repeat SD where three or more runs measure it,
else the SD pooled over all rows of its column; times and memory are taken on a logarithmic scale,
counted costs have no noise. A parametric bootstrap draws what the true values may be: normal around
the mean, the SD itself from its chi-square distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from search.measures import Measure

DRAWS = 1000
MANY = 200
"""So many rows may be on the front; with more, fewer draws are made."""

OWN_RUNS = 3

Values = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Values of N architectures in k objectives, low is good, with their noise.

    Attributes:
        values: (N, k), logarithms where the noise is relative.
        sd: (N, k) standard deviation of one run; NaN where not known, 0 where there is none.
        df: (N, k) degrees of freedom behind `sd`.
        n: (N, k) runs behind the values.
        is_own: (N, k), whether `sd` is the row's own; otherwise the rows of a column share it.
    """

    values: Values
    sd: Values
    df: Values
    n: Values
    is_own: Marks

    @property
    def error(self) -> Values:
        """Standard error of each value, (N, k)."""
        found: Values = self.sd / np.sqrt(self.n)
        return found


def nondominated(values: Values) -> Marks:
    """Marks the rows (low is good) that no other row equals or beats everywhere and beats once."""
    kept = np.zeros(len(values), dtype=bool)
    # In this order no row is beaten by a later one, so the front so far is all to compare with.
    for index in np.lexsort(values.T[::-1]):
        front = values[kept]
        as_good = np.all(front <= values[index], axis=1)
        kept[index] = not np.any(as_good & np.any(front < values[index], axis=1))
    return kept


def front_probability(estimates: Estimates, *, seed: int, draws: int = DRAWS) -> Values:
    """Returns each row's share of draws on the front; NaN for all where noise is not known."""
    n_rows = len(estimates.values)
    result = np.zeros(n_rows)
    if np.isnan(estimates.sd).any():
        return np.full(n_rows, np.nan)
    # Whatever a row beyond all doubt beats, its own conqueror beats too.
    kept = np.flatnonzero(~_hopeless(estimates))
    chosen = subset(estimates, kept)
    if len(kept) > MANY:
        draws = max(DRAWS // 10, DRAWS * MANY // len(kept))
    generator = np.random.default_rng(seed)
    shape = (draws, *chosen.values.shape)
    scale = np.sqrt(chosen.df / generator.chisquare(chosen.df, size=shape))
    # A pooled SD is too small, or too large, for all that share it at once.
    for column in range(shape[2]):
        shared = ~chosen.is_own[:, column]
        if shared.any():
            scale[:, shared, column] = scale[:, shared, column][:, :1]
    drawn = chosen.values + chosen.error * scale * generator.standard_normal(shape)
    for index in range(len(kept)):
        mine = drawn[:, index : index + 1]
        beaten = np.all(drawn <= mine, axis=2) & np.any(drawn < mine, axis=2)
        result[kept[index]] = 1.0 - np.any(beaten, axis=1).mean()
    return result


def estimates_of(
    readings: Sequence[Sequence[Sequence[float]]], measures: Sequence[Measure]
) -> Estimates:
    """Puts readings, by architecture and measure, into estimates with their noise."""
    shape = (len(readings), len(measures))
    values, sd, df, n = np.zeros(shape), np.zeros(shape), np.ones(shape), np.ones(shape)
    own = np.zeros(shape, dtype=bool)
    for column, measure in enumerate(measures):
        runs = [np.asarray(row[column], dtype=np.float64) for row in readings]
        if measure.origin == "measured":
            runs = [np.log(run) for run in runs]
        values[:, column] = [measure.sign * run.mean() for run in runs]
        n[:, column] = [len(run) for run in runs]
        if measure.origin == "counted":
            continue
        freedom = np.array([len(run) - 1.0 for run in runs])
        squares = np.array([np.var(run, ddof=1) if len(run) > 1 else 0.0 for run in runs])
        total = float(freedom.sum())
        pooled = math.sqrt(float(freedom @ squares) / total) if total else math.nan
        own[:, column] = freedom >= OWN_RUNS - 1
        sd[:, column] = np.where(own[:, column], np.sqrt(squares), pooled)
        df[:, column] = np.where(own[:, column], freedom, max(total, 1.0))
    return Estimates(values, sd, df, n, own)


def subset(estimates: Estimates, rows: NDArray[np.intp] | Marks) -> Estimates:
    """Returns some of the rows."""
    return Estimates(
        estimates.values[rows],
        estimates.sd[rows],
        estimates.df[rows],
        estimates.n[rows],
        estimates.is_own[rows],
    )


def _hopeless(estimates: Estimates) -> Marks:
    """Marks rows that some row beats in every measure by more than noise could ever make up."""
    reach = stats.t.ppf(1 - 1e-6, estimates.df) * estimates.error
    low, high = estimates.values - reach, estimates.values + reach
    has_noise = estimates.error > 0
    found = np.zeros(len(low), dtype=bool)
    for index in range(len(low)):
        if found[index]:
            continue
        ahead = np.where(has_noise | has_noise[index], high[index] < low, high[index] <= low)
        better = np.any(high[index] < low, axis=1)
        beaten = np.all(ahead, axis=1) & better
        found |= beaten
    return found
