"""Where the objective of a training may lie that was repeated in another environment."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from search.rows import TrialRow

COVERAGE = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Recorded value -+ t sqrt(2) s: the difference of two runs has twice the variance of one.

    Attributes:
        low: Lower end.
        high: Upper end.
        sd: Standard deviation s of runs with different seeds.
        df: Its degrees of freedom; t is Student's quantile at them.
        source: Whose repeats these are, in words.
    """

    low: float
    high: float
    sd: float
    df: int
    source: str


def interval_of(row: TrialRow, rows: Sequence[TrialRow], objective: str) -> Interval | None:
    """Returns the 95 % interval round a trial's value on the selection split.

    The repeats of its own architecture decide where there are any; else those of all architectures
    together, where their spreads agree. None where neither says anything.

    Args:
        row: The trial.
        rows: All trials of its study.
        objective: Name of the objective.
    """
    from scipy import stats

    from search.answers.variance import pooled

    groups: dict[str, list[float]] = defaultdict(list)
    for one in rows:
        comparable = one.state == "completed" and one.recipe == row.recipe
        if comparable and one.arch_id is not None and objective in one.selection:
            groups[one.arch_id].append(one.selection[objective])
    own = groups.get(row.arch_id or "", [])
    source = "repeats of this architecture"
    pool = pooled([own])
    if pool.sd is None:
        source = "repeats of all architectures"
        pool = pooled(list(groups.values()))
    if pool.sd is None:
        return None
    value = row.selection[objective]
    half = float(stats.t.ppf((1 + COVERAGE) / 2, pool.df)) * math.sqrt(2) * pool.sd
    return Interval(low=value - half, high=value + half, sd=pool.sd, df=pool.df, source=source)
