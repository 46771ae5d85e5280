"""Fronts of values with noise: who is beaten by nobody, and in how many of the ways it may be.

Pure functions on arrays. A value's noise is its own repeat SD where three or more runs measure it,
else the SD pooled over all rows of its column; times and memory are taken on a logarithmic scale,
counted costs have no noise. A parametric bootstrap draws what the true values may be: normal around
the mean, the SD itself from its chi-square distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from search.spec.measures import Measure

DRAWS = 1000
MANY = 200
"""So many rows may be on the front; with more, fewer draws are made."""

BEYOND_DOUBT = 1e-4
OWN_RUNS = 3

Readings = Mapping[int, float]
"""One value per run, by seed."""

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

    def interval(self, level: float) -> tuple[Values, Values]:
        """Ends of t intervals, (N, k) each; NaN where noise is not known."""
        reach = stats.t.ppf((1 + level) / 2, self.df) * self.error
        return self.values - reach, self.values + reach

    @property
    def error(self) -> Values:
        """Standard error of each value, (N, k)."""
        found: Values = self.sd / np.sqrt(self.n)
        return found


def nondominated(values: Values) -> Marks:
    """Marks the rows (low is good) that no other row equals or beats everywhere and beats once."""
    kept = np.zeros(len(values), dtype=bool)
    # In this order no row is beaten by a later one, so the first that is left is on the front.
    left = np.lexsort(values.T[::-1])
    columns = values.T[:, left]
    while len(left):
        kept[left[0]] = True
        mine = columns[:, :1]
        beaten = np.logical_and.reduce(columns >= mine) & np.logical_or.reduce(columns > mine)
        beaten[0] = True
        left, columns = left[~beaten], columns[:, ~beaten]
    return kept


def front_probability(estimates: Estimates, *, seed: int, draws: int = DRAWS) -> Values:
    """Returns each row's share of draws on the front; NaN for all where noise is not known."""
    n_rows = len(estimates.values)
    if np.isnan(estimates.sd).any():
        return np.full(n_rows, np.nan)
    # Whatever a row beyond all doubt beats, its own conqueror beats too.
    kept = np.flatnonzero(~hopeless(estimates))
    chosen = subset(estimates, kept)
    if len(kept) > MANY:
        draws = max(draws // 10, draws * MANY // len(kept))
    generator = np.random.default_rng(seed)
    counted = np.zeros(len(kept))
    for _ in range(draws):
        counted += nondominated(drawn(chosen, generator))
    result = np.zeros(n_rows)
    result[kept] = counted / draws
    return result


def drawn(estimates: Estimates, generator: np.random.Generator) -> Values:
    """Draws what the true values may be."""
    scale = np.sqrt(estimates.df / generator.chisquare(estimates.df))
    # A pooled SD is too small, or too large, for all that share it at once.
    for column, is_own in enumerate(estimates.is_own.T):
        scale[~is_own, column] = scale[~is_own, column][:1]
    noise = generator.standard_normal(estimates.values.shape)
    found: Values = estimates.values + estimates.error * scale * noise
    return found


def estimates_of(readings: Sequence[Sequence[Readings]], measures: Sequence[Measure]) -> Estimates:
    """Puts readings, by architecture and measure, into estimates with their noise.

    A seed decides initialisation, data order and masks for every architecture, so one is luckier
    than another for all of them. Means of metrics are therefore taken over the seeds that all
    architectures share; other seeds only tell the noise.
    """
    shape = (len(readings), len(measures))
    shared = shared_seeds(readings, measures)
    values, sd, df, n = np.zeros(shape), np.zeros(shape), np.ones(shape), np.ones(shape)
    own = np.zeros(shape, dtype=bool)
    for column, measure in enumerate(measures):
        runs = [np.asarray(list(row[column].values())) for row in readings]
        if measure.origin == "measured":
            runs = [np.log(run) for run in runs]
        weighed = runs
        if measure.origin == "metric" and shared:
            weighed = [np.asarray([row[column][seed] for seed in shared]) for row in readings]
        values[:, column] = [measure.sign * run.mean() for run in weighed]
        n[:, column] = [len(run) for run in weighed]
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


def shared_seeds(
    readings: Sequence[Sequence[Readings]], measures: Sequence[Measure]
) -> tuple[int, ...]:
    """Returns the seeds under which every architecture has every metric; empty for none."""
    columns = [i for i, measure in enumerate(measures) if measure.origin == "metric"]
    found = [set(row[column]) for row in readings for column in columns]
    return tuple(sorted(set.intersection(*found))) if found else ()


def subset(estimates: Estimates, rows: NDArray[np.intp] | Marks) -> Estimates:
    """Returns some of the rows."""
    return Estimates(
        estimates.values[rows],
        estimates.sd[rows],
        estimates.df[rows],
        estimates.n[rows],
        estimates.is_own[rows],
    )


def hopeless(estimates: Estimates) -> Marks:
    """Marks rows that some row beats in every measure by more than noise could make up."""
    reach = stats.t.ppf(1 - BEYOND_DOUBT, estimates.df) * estimates.error
    low, high = (estimates.values - reach).T, (estimates.values + reach).T
    has_noise = (reach > 0).T
    found = np.zeros(low.shape[1], dtype=bool)
    # Whoever beats a row by its upper ends has an upper end on the front of those.
    for index in np.flatnonzero(nondominated(high.T)):
        mine, is_noisy = high[:, [index]], has_noise[:, [index]]
        better = mine < low
        ahead = better | ((mine <= low) & ~(has_noise | is_noisy))
        found |= np.logical_and.reduce(ahead) & np.logical_or.reduce(better)
    return found
