"""Analysis of variance by least squares: F-tests of nested models, and estimable contrasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

TINY = 1e-12
"""Size of a rest, as a share of the values, below which it is rounding."""


@dataclass(frozen=True, slots=True)
class FTest:
    """An F-test: the ratio of two mean squares, their degrees of freedom, and its p-value."""

    f: float
    df1: float
    df2: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Squares:
    """A sum of squares with its degrees of freedom."""

    total: float
    df: int

    @property
    def mean(self) -> float:
        """The mean square."""
        return self.total / self.df

    def __sub__(self, other: Squares) -> Squares:
        """What a larger model explains: the difference of two residuals."""
        return Squares(max(0.0, self.total - other.total), self.df - other.df)


def f_test(effect: Squares, error: Squares) -> FTest | None:
    """Tests a sum of squares against an error; None where one has no degree of freedom, or 0."""
    if effect.df < 1 or error.df < 1 or error.total <= 0:
        return None
    f = effect.mean / error.mean
    return FTest(f, effect.df, error.df, float(stats.f.sf(f, effect.df, error.df)))


def seeds_f_test(table: np.ndarray) -> FTest | None:
    """Tests whether groups differ, seeds as blocks, though groups may differ in their noise.

    The F of the groups against groups x seeds, with both degrees of freedom times the epsilon of
    Greenhouse and Geisser (1959): 1 where all differences between groups vary alike, 1 / (k - 1)
    at worst. None where nothing varies.

    Args:
        table: One mean for each group and seed, (k, n).
    """
    k, n = table.shape
    if k < 2 or n < 2:
        return None
    rest = _interaction(table)
    error = Squares(_squares(rest, table), (k - 1) * (n - 1))
    means = table.mean(axis=1)
    plain = f_test(Squares(n * float(((means - means.mean()) ** 2).sum()), k - 1), error)
    if plain is None:
        return None
    spread = rest @ rest.T
    epsilon = float(np.trace(spread) ** 2 / ((k - 1) * (spread**2).sum()))
    epsilon = min(1.0, max(1.0 / (k - 1), epsilon))
    df1, df2 = epsilon * plain.df1, epsilon * plain.df2
    return FTest(plain.f, df1, df2, float(stats.f.sf(plain.f, df1, df2)))


def residual(model: np.ndarray, y: np.ndarray) -> Squares:
    """What a linear model leaves unexplained.

    Args:
        model: Columns of the model, (n, p), of any rank.
        y: Observations, (n,).
    """
    fitted, _, rank, _ = np.linalg.lstsq(model, y, rcond=None)
    rest = y - model @ fitted
    return Squares(_squares(rest, y), len(y) - int(rank))


class Estimates:
    """Least-squares estimates of a linear model, as weights over the observations.

    Args:
        model: Columns of the model, (n, p).
    """

    def __init__(self, model: np.ndarray) -> None:
        self.model = model
        self.inverse = np.linalg.pinv(model)

    def weights(self, contrast: Mapping[int, float]) -> np.ndarray | None:
        """Weights w of the estimate w'y of a contrast c'b; None if it is not estimable.

        Its variance is w'w times that of an observation.

        Args:
            contrast: c, by column; 0 where absent.
        """
        wanted = np.zeros(self.model.shape[1])
        wanted[list(contrast)] = list(contrast.values())
        weights: np.ndarray = wanted @ self.inverse
        return weights if np.allclose(weights @ self.model, wanted, atol=1e-8) else None


def indicators(groups: Sequence[int]) -> np.ndarray:
    """One column for each distinct group, 1 where an observation is in it."""
    labels = np.asarray(groups)
    columns: np.ndarray = (labels[:, None] == np.unique(labels)[None, :]).astype(np.float64)
    return columns


def two_way_residual(table: np.ndarray) -> Squares:
    """Cell x seed interaction of a complete table (cells, seeds): noise, with seeds as blocks."""
    n_cells, n_seeds = table.shape
    return Squares(_squares(_interaction(table), table), (n_cells - 1) * (n_seeds - 1))


def _interaction(table: np.ndarray) -> np.ndarray:
    rest: np.ndarray = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    return rest


def _squares(rest: np.ndarray, values: np.ndarray) -> float:
    """Sum of squares of a rest, 0 where it is rounding."""
    total = float((rest**2).sum())
    return 0.0 if total <= TINY**2 * float((values**2).sum()) else total
