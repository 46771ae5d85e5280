"""Error of a difference between two architectures that comes from the choice of documents.

More seeds do not lower it: every run of a study is read on the same documents. What counts is how
the *difference* varies from document to document; what all architectures find hard or easy
cancels. In a two-way layout of seeds and documents, the spread between documents of a mean over
seeds holds two things: the documents' own part, and seed noise within documents, which the
variance between seeds already counts. The second is estimated from the residuals and taken off.
Both are read on differences of runs with a common seed, because those may move together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from search.answers.arms import Arm
from search.rows import DocumentSums, TrialRow

MIN_GROUPS = 4
SURE = 0.95


@dataclass(frozen=True, slots=True)
class EvaluationError:
    """Sampling variance of a paired difference over the documents.

    Attributes:
        variance: of the difference, in squared units of the objective; never negative.
        df: Satterthwaite's degrees of freedom of that variance.
        n_groups: groups of documents that were compared.
    """

    variance: float
    df: float
    n_groups: int

    @property
    def sd(self) -> float:
        """Standard error of the difference from the choice of documents."""
        return float(np.sqrt(self.variance))

    @property
    def least_sd(self) -> float:
        """Lower end of a one-sided 95 % interval of `sd` (chi square): what it is at the least."""
        return self.sd * float(np.sqrt(self.df / stats.chi2.ppf(SURE, self.df)))


def evaluation_error(
    left: Mapping[int, DocumentSums], right: Mapping[int, DocumentSums]
) -> EvaluationError | None:
    """Estimates the evaluation error of mean(left) - mean(right); None where it cannot be.

    The metric of a run is R = sum_g s_g / sum_g n_g over groups g of documents. Its influence by
    group is u_g = (s_g - R n_g) / sum n, and d_sg the difference of two runs' influences with
    seed s. G/(G - 1) sum_g (mean_s d_sg)^2 is the variance that a bootstrap by document tends
    to; off it comes, with S common seeds, G/(G - 1) sum_g var_s(d_sg) / S.

    Args:
        left: one entry per run, by seed, all with the same groups.
        right: likewise; at least two seeds are common.
    """
    seeds = sorted(left.keys() & right.keys())
    if len(seeds) < 2:
        return None
    ours, theirs = ([side[seed] for seed in seeds] for side in (left, right))
    sizes = {run.n for run in (*ours, *theirs)}
    if len(sizes) != 1:
        return None
    n = np.asarray(sizes.pop(), dtype=np.float64)
    groups = int(np.count_nonzero(n))
    if groups < MIN_GROUPS:
        return None
    gaps = _influences(ours, n) - _influences(theirs, n)
    scale = groups / (groups - 1)
    between = scale * float(np.sum(gaps.mean(0) ** 2))
    within = scale * float(np.sum(gaps.var(0, ddof=1))) / len(seeds)
    variance = between - within
    if variance <= 0:
        return EvaluationError(0.0, groups - 1.0, groups)
    spread = (between**2 + within**2 / (len(seeds) - 1)) / (groups - 1)
    return EvaluationError(variance, variance**2 / spread, groups)


def evaluation_error_of(left: Arm, right: Arm) -> EvaluationError | None:
    """The evaluation error of two architectures' confirmation runs on the test split."""
    return evaluation_error(_test_documents(left), _test_documents(right))


def _test_documents(arm: Arm) -> dict[int, DocumentSums]:
    return {row.seed: row.documents["test"] for row in arm.rows if _is_read(row)}


def _is_read(row: TrialRow) -> bool:
    return row.phase == "confirm" and "test" in row.documents


def _influences(runs: Sequence[DocumentSums], n: NDArray[np.float64]) -> NDArray[np.float64]:
    """(runs, groups): what each group adds to a run's metric beyond its share."""
    sums = np.asarray([run.sums for run in runs], dtype=np.float64)
    total = n.sum()
    result: NDArray[np.float64] = (sums - sums.sum(1, keepdims=True) / total * n) / total
    return result
