"""What one run of a design varies by: the error of its intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from search.answers.anova import Squares, indicators, residual, two_way_residual
from search.answers.design_table import Labels, Table, Weights
from search.answers.family import ALPHA
from search.answers.intervals import Part
from search.answers.variance import ENOUGH_DF, POOLED_ABOVE, few_words, pooled

NO_ERROR = "no run is left to show the error"


@dataclass(frozen=True, slots=True)
class DesignError:
    """The standard deviation of one run that the design's intervals rest on.

    Attributes:
        sd: None where nothing shows it.
        df: Its degrees of freedom.
        source: ``seeds`` (stacks x seeds, with the seeds as blocks), ``lack of fit`` (what count
            and layers leave unexplained), ``repeats`` (the spread of fresh seeds) or ``lack of fit
            and repeats`` (both, where they agree).
        reason: What is to be said about it; empty where there is nothing.
        own: Of stacks with repeats, where these do not agree in their spread: the variance of one
            run of each, which then stands for it in all intervals.
    """

    sd: float | None
    df: int
    source: str
    reason: str
    own: Mapping[Labels, Part] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Whether nothing speaks against one noise for all stacks."""
        return not self.own

    def parts(self, weights: Weights) -> tuple[Part, ...]:
        """Parts of the variance of a weighted sum of runs; () where the error is not known."""
        if self.sd is None:
            return ()
        squares: dict[Labels | None, float] = {}
        for (labels, _), weight in weights.items():
            stack = labels if labels in self.own else None
            squares[stack] = squares.get(stack, 0.0) + weight**2
        return tuple(
            Part(self.sd**2 * total, self.df)
            if stack is None
            else Part(self.own[stack].variance * total, self.own[stack].df)
            for stack, total in squares.items()
            if total > 0
        )


def error_of(table: Table) -> DesignError:
    """Finds the error: the seeds', else the lack of fit, the repeats, or both pooled.

    The repeats count where they agree with each other. Alone they are the error where the lack of
    fit is larger than they allow: then layers act together, which a contrast of stacks includes.
    """
    own = own_variances(table)
    if len(table.seeds) > 1:
        return as_error(two_way_residual(table.y), "seeds", own)
    lack, repeats = lack_of_fit(table), repeats_of(table)
    if lack.df < 1 or lack.total <= 0 or repeats is None:
        return as_error(lack, "lack of fit", own)
    lower = float(stats.f.cdf(lack.mean / repeats.mean, lack.df, repeats.df))
    if lower >= 1 - ALPHA:
        return as_error(repeats, "repeats", own)
    if 2 * min(lower, 1 - lower) <= POOLED_ABOVE:
        return as_error(lack, "lack of fit", own)
    both = Squares(lack.total + repeats.total, lack.df + repeats.df)
    return as_error(both, "lack of fit and repeats", own)


def lack_of_fit(table: Table) -> Squares:
    """What counts and additive layers leave of the stacks' means."""
    return residual(np.hstack([indicators(table.counts), table.x]), table.means)


def repeats_of(table: Table) -> Squares | None:
    """The spread of fresh seeds; None where stacks do not agree in it, or it is hardly known."""
    pool = pooled(tuple(table.repeats.values()))
    if pool.sd is None or pool.df < ENOUGH_DF:
        return None
    return Squares(pool.sd**2 * pool.df, pool.df)


def own_variances(table: Table) -> dict[Labels, Part]:
    """Variance of one run of each repeated stack, where they do not agree; else nothing."""
    if pooled(tuple(table.repeats.values())).agrees:
        return {}
    varying = {k: v for k, v in table.repeats.items() if len(v) > 1 and np.ptp(v) > 0}
    return {k: Part(float(np.var(v, ddof=1)), len(v) - 1.0) for k, v in varying.items()}


def as_error(squares: Squares, source: str, own: Mapping[Labels, Part]) -> DesignError:
    """The error of a sum of squares, or why there is none."""
    if squares.df < 1 or squares.total <= 0:
        return DesignError(None, max(0, squares.df), source, NO_ERROR)
    sd = math.sqrt(squares.mean)
    return DesignError(sd, squares.df, source, few_words(squares.df), own)


def with_company(table: Table) -> list[bool]:
    """Whether other stacks have a stack's count of cheap layers."""
    return [table.counts.count(count) > 1 for count in table.counts]
