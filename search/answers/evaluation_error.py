"""Error of a difference between two architectures that comes from the choice of documents.

More seeds do not lower it: every run of a study is read on the same documents. What counts is how
the *difference* varies from document to document; what all architectures find hard or easy
cancels. In a two-way layout of seeds and documents, the spread between documents of a mean over
seeds holds two things: the documents' own part, and seed noise within documents, which the
variance between seeds already counts. The second is estimated from the residuals and taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search.answers.arms import Arm
from search.rows import DocumentSums, TrialRow

MIN_GROUPS = 4


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


def evaluation_error(
    left: Sequence[DocumentSums], right: Sequence[DocumentSums]
) -> EvaluationError | None:
    """Estimates the evaluation error of mean(left) - mean(right); None where it cannot be.

    The metric of a run is R = sum_g s_g / sum_g n_g over groups g of documents. Its influence by
    group is u_g = (s_g - R n_g) / sum n, and G/(G - 1) sum_g (mean left u_g - mean right u_g)^2
    is the variance that a bootstrap by document tends to. From it comes off, for each side with S
    runs, G/(G - 1) sum_g var_s(u_sg) / S.

    Args:
        left: one entry per run, at least two, all with the same groups.
        right: likewise.
    """
    if min(len(left), len(right)) < 2:
        return None
    sizes = {run.n for run in (*left, *right)}
    if len(sizes) != 1:
        return None
    n = np.asarray(sizes.pop(), dtype=np.float64)
    groups = int(np.count_nonzero(n))
    if groups < MIN_GROUPS:
        return None
    ours, theirs = (_influences(runs, n) for runs in (left, right))
    scale = groups / (groups - 1)
    between = scale * float(np.sum((ours.mean(0) - theirs.mean(0)) ** 2))
    within = [scale * float(np.sum(u.var(0, ddof=1))) / len(u) for u in (ours, theirs)]
    variance = between - sum(within)
    if variance <= 0:
        return EvaluationError(0.0, groups - 1.0, groups)
    spread = between**2 / (groups - 1)
    for part, u in zip(within, (ours, theirs), strict=True):
        spread += part**2 / ((len(u) - 1) * (groups - 1))
    return EvaluationError(variance, variance**2 / spread, groups)


def evaluation_error_of(left: Arm, right: Arm) -> EvaluationError | None:
    """The evaluation error of two architectures' confirmation runs on the test split."""
    return evaluation_error(_test_documents(left), _test_documents(right))


def _test_documents(arm: Arm) -> list[DocumentSums]:
    return [row.documents["test"] for row in arm.rows if _is_read(row)]


def _is_read(row: TrialRow) -> bool:
    return row.phase == "confirm" and "test" in row.documents


def _influences(runs: Sequence[DocumentSums], n: NDArray[np.float64]) -> NDArray[np.float64]:
    """(runs, groups): what each group adds to a run's metric beyond its share."""
    sums = np.asarray([run.sums for run in runs], dtype=np.float64)
    total = n.sum()
    result: NDArray[np.float64] = (sums - sums.sum(1, keepdims=True) / total * n) / total
    return result
