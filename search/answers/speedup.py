"""Is the speed-up real? The candidate against all-attention, and against simply fewer layers.

Cheaper layers are worth their name where three things hold: the candidate is faster than
all-attention as measured (not as counted), it is not worse by the verdict, and no shorter model is
at least as fast without being worse; where one is, dropping layers would have done. ``yes`` needs
all three, one refuted is ``no``, anything else ``undecided``.

Times compare as ratios: an interval of the mean difference of logarithms over the runs, whose
variance holds the spread between runs and that of the passes within each run. Only runs under the
same conditions (device, number format, batch, length) take part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from search.answers.arms import Arm, Finalists
from search.answers.intervals import TOO_FEW, Part, difference
from search.answers.verdicts import Contrast
from search.rows import Latency

LEVEL = 0.95
WIDTH_OF_80_PERCENT = 2.5631
"""Standard deviations between the 10 % and the 90 % point of a normal distribution."""

MEDIAN_VARIANCE = math.pi / 2
"""Variance of a median of many normal values, in those of their mean."""

Real = Literal["yes", "no", "undecided"]
Conditions = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast one architecture is as another, measured.

    Attributes:
        estimate: Ratio of the other's time to its own.
        low: Lower end of the 95 % interval; None with fewer than two runs a side.
        high: Upper end.
        n: Runs of the faster-to-be.
        n_other: Runs of the other.
        reason: Why there is no interval.
    """

    estimate: float
    low: float | None
    high: float | None
    n: int
    n_other: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """Whether the candidate's speed-up over all-attention is real.

    Attributes:
        real: ``yes``, ``no`` or ``undecided``.
        because: What refutes it or is open, in words; empty for ``yes``.
        candidate: Code of the candidate.
        measured: Against all-attention; None where not measured under one set of conditions.
        counted: The same ratio by FLOPs, a guide.
        shorter: Code of the best shorter model; None where none was confirmed.
        shorter_measured: How many times as fast as the candidate the shorter model is.
        conditions: Device, number format, batch and length of the times.
    """

    real: Real
    because: tuple[str, ...]
    candidate: str
    measured: Ratio | None
    counted: float | None
    shorter: str | None
    shorter_measured: Ratio | None
    conditions: Conditions | None


def speed_up_of(finalists: Finalists, contrasts: Sequence[Contrast]) -> SpeedUp | None:
    """Judges the speed-up; None where there is nothing to compare or no time was measured."""
    candidate, reference = finalists.candidate, finalists.reference
    if candidate is None or reference is None or candidate.arch_id == reference.arch_id:
        return None
    conditions = common_conditions([candidate, reference])
    measured = None if conditions is None else ratio_of(reference, candidate, conditions)
    if measured is None:
        return None
    shorter = finalists.shorter
    against_shorter = None
    if shorter is not None and conditions is not None:
        against_shorter = ratio_of(candidate, shorter, conditions)
    words = {
        (contrast.candidate_id, contrast.other_id): contrast.verdict.word for contrast in contrasts
    }
    answers = (
        _is_faster(measured),
        _is_as_good(words.get((candidate.arch_id, reference.arch_id))),
        _outdoes(shorter, against_shorter, words, candidate),
    )
    if any(real == "no" for real, _ in answers):
        real: Real = "no"
    else:
        real = "yes" if all(said == "yes" for said, _ in answers) else "undecided"
    flops = reference.cost("flops"), candidate.cost("flops")
    return SpeedUp(
        real=real,
        because=tuple(why for said, why in answers if said == real and real != "yes"),
        candidate=candidate.code,
        measured=measured,
        counted=flops[0] / flops[1] if flops[0] and flops[1] else None,
        shorter=None if shorter is None else shorter.code,
        shorter_measured=against_shorter,
        conditions=conditions,
    )


def common_conditions(arms: Sequence[Arm]) -> Conditions | None:
    """Returns the conditions with the most runs among those that all arms were timed under."""
    seen = [Counter(timed.conditions for timed in latencies(arm)) for arm in arms]
    shared = set(seen[0]).intersection(*seen[1:])
    return max(sorted(shared), key=lambda c: min(count[c] for count in seen), default=None)


def latencies(arm: Arm, conditions: Conditions | None = None) -> list[Latency]:
    """Returns the timed passes of an architecture's runs, under some conditions or all."""
    return [
        row.latency
        for row in arm.rows
        if row.latency is not None and conditions in (None, row.latency.conditions)
    ]


def ratio_of(slow: Arm, fast: Arm, conditions: Conditions) -> Ratio | None:
    """Returns how many times as fast `fast` is as `slow`; None where one was not timed so."""
    ours, theirs = latencies(fast, conditions), latencies(slow, conditions)
    if not ours or not theirs:
        return None
    found = difference(
        [math.log(timed.median) for timed in theirs],
        [math.log(timed.median) for timed in ours],
        *(_within(runs) for runs in (ours, theirs)),
    )
    interval = found.interval(LEVEL)
    if min(len(ours), len(theirs)) < 2:
        return Ratio(math.exp(found.estimate), None, None, len(ours), len(theirs), TOO_FEW)
    low, high = (None if end is None else math.exp(end) for end in (interval.low, interval.high))
    return Ratio(math.exp(found.estimate), low, high, len(ours), len(theirs), interval.reason)


def _within(runs: Sequence[Latency]) -> Part:
    """The part of a mean's variance that comes from the passes of each run."""
    variances = [
        MEDIAN_VARIANCE * (math.log(timed.high / timed.low) / WIDTH_OF_80_PERCENT) ** 2 / timed.n
        for timed in runs
    ]
    passes = sum(timed.n - 1 for timed in runs)
    return Part(math.fsum(variances) / len(runs) ** 2, max(1.0, float(passes)))


def _is_faster(measured: Ratio) -> tuple[Real, str]:
    if measured.low is None or measured.high is None:
        return "undecided", f"its time needs more runs ({measured.reason})"
    if measured.low > 1:
        return "yes", ""
    if measured.high <= 1:
        return "no", "it is not faster than all-attention"
    return "undecided", "whether it is faster than all-attention is within the noise"


def _is_as_good(word: str | None) -> tuple[Real, str]:
    if word in ("better", "may be cheap"):
        return "yes", ""
    if word == "keep attention":
        return "no", "it is worse than all-attention"
    return "undecided", "whether it is as good as all-attention is undecided"


def _outdoes(
    shorter: Arm | None,
    ratio: Ratio | None,
    words: Mapping[tuple[str, str], str],
    candidate: Arm,
) -> tuple[Real, str]:
    """Whether the candidate is more than a shorter model would be."""
    if shorter is None:
        return "undecided", "no shorter model was confirmed"
    word = words.get((candidate.arch_id, shorter.arch_id))
    is_worse = word == "keep depth"
    if is_worse or (ratio is not None and ratio.high is not None and ratio.high < 1):
        return "yes", ""
    is_as_fast = ratio is not None and ratio.low is not None and ratio.low >= 1
    if is_as_fast and word in ("shorter is better", "may be shorter"):
        return "no", f"{shorter.code}, with fewer layers, is at least as fast and not worse"
    return "undecided", f"whether {shorter.code}, with fewer layers, does as well is undecided"
