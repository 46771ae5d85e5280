"""Were the ranks still moving? Order and lead at the validation points of one schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import stats

from search.answers.arms import EXPLORATION, Arm, Finalists
from search.answers.intervals import Interval, mean_interval
from search.answers.question import Question
from search.answers.verdicts import UNDECIDED
from search.rows import TrialRow

LEVEL = 0.95
MIN_ARCHITECTURES = 4


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's tau between the order at an earlier validation point and at the last."""

    step: int
    last_step: int
    tau: float
    swapped: int
    pairs: int


@dataclass(frozen=True, slots=True)
class Lead:
    """The candidate's lead over all-attention along training; positive: it is ahead.

    ``points`` are (step, mean lead); ``change`` is the lead at the last point minus that at the
    middle one with its t interval over seeds; ``word`` is ``growing``, ``closing``, ``steady``
    (the interval lies within the tolerance) or ``undecided``.
    """

    candidate: str
    reference: str
    n: int
    points: tuple[tuple[int, float], ...]
    middle_step: int
    change: Interval
    word: str


@dataclass(frozen=True, slots=True)
class Ranks:
    """Order of ``n`` architectures; ``previous`` and ``half`` are None where there is no point."""

    n: int
    previous: Agreement | None
    half: Agreement | None


def ranks_of(arms: Sequence[Arm]) -> Ranks:
    """Compares the last order of the explored architectures with the orders before."""
    curves = [curve for arm in arms if arm.explored and (curve := _curve(arm.explored[0]))]
    if not curves:
        return Ranks(0, None, None)
    last = max(max(curve) for curve in curves)
    curves = [curve for curve in curves if last in curve]
    if len(curves) < MIN_ARCHITECTURES:
        return Ranks(len(curves), None, None)
    steps = sorted(set.intersection(*(set(curve) for curve in curves)))
    earlier = steps[:-1]
    half = [step for step in earlier if 2 * step <= last]
    return Ranks(
        n=len(curves),
        previous=_agreement(curves, earlier[-1], last) if earlier else None,
        half=_agreement(curves, half[-1], last) if half and half[-1] != earlier[-1] else None,
    )


def _curve(row: TrialRow) -> dict[int, float]:
    return {step: value for step, value in row.curve if math.isfinite(value)}


def _agreement(curves: Sequence[Mapping[int, float]], step: int, last: int) -> Agreement | None:
    before = np.array([curve[step] for curve in curves])
    after = np.array([curve[last] for curve in curves])
    tau = float(stats.kendalltau(before, after).statistic)
    if not math.isfinite(tau):
        return None
    swapped = sum(
        int(np.count_nonzero((before[:i] - before[i]) * (after[:i] - after[i]) < 0))
        for i in range(1, len(curves))
    )
    return Agreement(step, last, tau, swapped, len(curves) * (len(curves) - 1) // 2)


def lead_of(finalists: Finalists, question: Question) -> Lead | None:
    """The candidate's lead over attention at each validation point, seeds matched.

    Confirmation seeds are used where there are two or more in common, else the exploration seed.
    None where the two share no curve.
    """
    candidate, reference = finalists.candidate, finalists.reference
    if candidate is None or reference is None or candidate.arch_id == reference.arch_id:
        return None
    shared = _shared_leads(candidate, reference, question, frozenset({"confirm"}))
    if len(shared) < 2:
        shared = _shared_leads(candidate, reference, question, EXPLORATION)
    if not shared:
        return None
    steps = sorted(set.intersection(*(set(lead) for lead in shared)))
    if len(steps) < 2:
        return None
    last = steps[-1]
    middle = min(steps[:-1], key=lambda step: abs(2 * step - last))
    change = mean_interval([lead[last] - lead[middle] for lead in shared], LEVEL)
    return Lead(
        candidate=candidate.code,
        reference=reference.code,
        n=len(shared),
        points=tuple((step, fmean(lead[step] for lead in shared)) for step in steps),
        middle_step=middle,
        change=change,
        word=lead_word(change, question.tolerance),
    )


def _shared_leads(
    candidate: Arm, reference: Arm, question: Question, phases: frozenset[str]
) -> list[dict[int, float]]:
    ours, theirs = (
        {row.seed: _curve(row) for row in arm.rows if row.phase in phases}
        for arm in (candidate, reference)
    )
    leads = []
    for seed in sorted(ours.keys() & theirs.keys()):
        steps = ours[seed].keys() & theirs[seed].keys()
        if steps:
            leads.append(
                {step: question.sign * (theirs[seed][step] - ours[seed][step]) for step in steps}
            )
    return leads


def lead_word(change: Interval, tolerance: float) -> str:
    """What a change of the lead allows to be said; ``steady`` where it is within the tolerance."""
    if change.low is None or change.high is None:
        return UNDECIDED
    if -tolerance < change.low and change.high < tolerance:
        return "steady"
    if change.low > 0:
        return "growing"
    return "closing" if change.high < 0 else UNDECIDED
