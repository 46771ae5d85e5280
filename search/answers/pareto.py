"""The Pareto front with its uncertainty: which architectures nothing else beats, and how surely.

An architecture is on the front where no other is as good in every objective and better in one.
Metrics move with the seed and times with the machine, so a front of single readings names whoever
was lucky; the words say how often the architecture is on it when the readings are drawn anew from
their noise (`search.answers.front`). Exploratory: the readings are those of the selection split
that the search saw.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from search.answers.arms import Arm
from search.answers.front import (
    Estimates,
    Readings,
    estimates_of,
    front_probability,
    nondominated,
    subset,
)
from search.answers.question import Question
from search.rows import TrialRow
from search.spec.limits import are_within
from search.spec.measures import COSTS, Measure

CERTAIN = 0.95
LEVEL = 0.95

Word = Literal["on the front", "possibly", "dominated", "over a limit", "unknown"]


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """An architecture beside the front.

    Attributes:
        arch_id: The architecture.
        code: One character a layer.
        roles: Names as a baseline.
        values: Mean of its readings, by objective; metrics over the seeds that all architectures
            share.
        low: Lower ends of their 95 % intervals; equal to the values where there is no noise, None
            where the noise is not known.
        high: Upper ends.
        n: Runs behind the first value.
        is_best: Whether no other's means are as good in every objective and better in one.
        probability: Share of the draws in which it is on the front; None where noise is not known.
        word: ``on the front`` (95 % or more), ``dominated`` (5 % or less), ``possibly``,
            ``unknown`` without repeats, ``over a limit`` where it keeps not every limit.
    """

    arch_id: str
    code: str
    roles: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    n: int
    is_best: bool
    probability: float | None
    word: Word


@dataclass(frozen=True, slots=True)
class Front:
    """The front of a study.

    Attributes:
        measures: What is weighed; with one objective, the counted cost stands beside it.
        points: Architectures with a value in all of them, in order of the first.
        left_out: Architectures without one, or timed on another device than most.
        conditions: Device, number format, batch and length of the times; empty without times.
        reason: Why nothing is said with certainty; empty where the noise is known.
    """

    measures: tuple[Measure, ...]
    points: tuple[FrontPoint, ...]
    left_out: int
    conditions: tuple[str, str, int, int] | None
    reason: str


def front_measures(question: Question) -> tuple[Measure, ...]:
    """Returns the objectives; where there is one, with FLOPs (parameters if FLOPs are matched)."""
    measures = question.measures
    if len(measures) > 1:
        return measures
    first = Measure(question.objective, question.unit, question.direction, "metric")
    return first, COSTS["params" if question.match == "flops" else "flops"]


def front_of(arms: Sequence[Arm], question: Question) -> Front:
    """Finds the front and how sure each architecture's place is."""
    measures = front_measures(question)
    conditions = _usual_conditions(arms, measures)
    readings = [_readings(arm, measures, conditions) for arm in arms]
    known = [(arm, columns) for arm, columns in zip(arms, readings, strict=True) if all(columns)]
    allowed = np.array([are_within(arm.rows, question.limits) for arm, _ in known], dtype=bool)
    estimates = estimates_of([columns for _, columns in known], measures)
    points = _points(known, measures, estimates)
    within = subset(estimates, allowed)
    places = zip(
        np.flatnonzero(allowed),
        nondominated(within.values),
        front_probability(within, seed=question.seed),
        strict=True,
    )
    for index, is_best, share in places:
        probability = _or_none(float(share))
        points[index] = replace(
            points[index],
            is_best=bool(is_best),
            probability=probability,
            word=_word(probability),
        )
    unsure = bool(known) and bool(np.isnan(estimates.sd).any())
    return Front(
        measures=measures,
        points=tuple(sorted(points, key=lambda point: measures[0].sign * point.values[0])),
        left_out=len(arms) - len(known),
        conditions=conditions,
        reason="no architecture has repeats yet, so noise is not known" if unsure else "",
    )


def _usual_conditions(
    arms: Sequence[Arm], measures: Sequence[Measure]
) -> tuple[str, str, int, int] | None:
    """Returns the conditions under which most rows were timed, where times are weighed."""
    if all(measure.name not in ("latency", "throughput") for measure in measures):
        return None
    seen = Counter(row.latency.conditions for arm in arms for row in arm.rows if row.latency)
    return seen.most_common(1)[0][0] if seen else None


def _readings(
    arm: Arm, measures: Sequence[Measure], conditions: tuple[str, str, int, int] | None
) -> list[Readings]:
    def compares(row: TrialRow, measure: Measure) -> bool:
        if measure.name not in ("latency", "throughput") or measure.origin == "metric":
            return True
        return row.latency is None or row.latency.conditions == conditions

    return [
        {
            row.seed: value
            for row in arm.rows
            if compares(row, measure) and (value := measure.value(row)) is not None
        }
        for measure in measures
    ]


def _points(
    known: Sequence[tuple[Arm, Sequence[Readings]]],
    measures: Sequence[Measure],
    estimates: Estimates,
) -> list[FrontPoint]:
    """The architectures with their values in the measures' units; the place comes later."""
    columns = []
    for ends in (estimates.values, *estimates.interval(LEVEL)):
        turned = ends * [measure.sign for measure in measures]
        is_log = [measure.origin == "measured" for measure in measures]
        turned[:, is_log] = np.exp(turned[:, is_log])
        columns.append(turned)
    middle, one, other = columns
    return [
        FrontPoint(
            arch_id=arm.arch_id,
            code=arm.code,
            roles=arm.roles,
            values=tuple(middle[row].tolist()),
            low=tuple(map(_or_none, np.minimum(one[row], other[row]).tolist())),
            high=tuple(map(_or_none, np.maximum(one[row], other[row]).tolist())),
            n=int(estimates.n[row, 0]),
            is_best=False,
            probability=None,
            word="over a limit",
        )
        for row, (arm, _) in enumerate(known)
    ]


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _word(probability: float | None) -> Word:
    if probability is None:
        return "unknown"
    if probability >= CERTAIN:
        return "on the front"
    return "dominated" if probability <= 1 - CERTAIN else "possibly"
