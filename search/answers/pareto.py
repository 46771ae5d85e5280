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
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import numpy as np
from scipy import stats

from search.answers.arms import Arm
from search.answers.front import Estimates, estimates_of, front_probability, nondominated, subset
from search.answers.question import Question
from search.limits import are_within
from search.measures import COSTS, Measure
from search.rows import TrialRow

CERTAIN = 0.95

Word = Literal["on the front", "possibly", "dominated", "over a limit", "unknown"]


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """An architecture beside the front.

    Attributes:
        arch_id: The architecture.
        code: One character a layer.
        roles: Names as a baseline.
        values: Mean of its readings, by objective.
        low: Lower ends of their 95 % intervals; equal to the values where there is no noise, None
            where the noise is not known.
        high: Upper ends.
        n: Runs behind the values.
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
    known.sort(key=lambda pair: measures[0].sign * fmean(pair[1][0]))
    allowed = np.array([are_within(arm.rows, question.limits) for arm, _ in known], dtype=bool)
    estimates = estimates_of([columns for _, columns in known], measures)
    probability = np.full(len(known), np.nan)
    best = np.zeros(len(known), dtype=bool)
    if allowed.any():
        within = subset(estimates, allowed)
        best[allowed] = nondominated(within.values)
        probability[allowed] = front_probability(within, seed=question.seed)
    points = tuple(
        _point(arm, columns, measures, estimates, index, bool(best[index]), probability[index])
        if allowed[index]
        else _point(arm, columns, measures, estimates, index, False, None)
        for index, (arm, columns) in enumerate(known)
    )
    unsure = bool(known) and bool(np.isnan(estimates.sd).any())
    return Front(
        measures=measures,
        points=points,
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
) -> list[list[float]]:
    def compares(row: TrialRow, measure: Measure) -> bool:
        if measure.name not in ("latency", "throughput") or measure.origin == "metric":
            return True
        return row.latency is None or row.latency.conditions == conditions

    return [
        [
            value
            for row in arm.rows
            if compares(row, measure) and (value := measure.value(row)) is not None
        ]
        for measure in measures
    ]


def _point(
    arm: Arm,
    columns: Sequence[Sequence[float]],
    measures: Sequence[Measure],
    estimates: Estimates,
    index: int,
    is_best: bool,
    probability: float | None,
) -> FrontPoint:
    values, low, high = [], [], []
    for column, measure in enumerate(measures):
        middle = measure.sign * float(estimates.values[index, column])
        error = float(estimates.error[index, column])
        reach = float(stats.t.ppf(0.975, estimates.df[index, column])) * error if error else 0.0
        ends = (middle, middle - reach, middle + reach)
        if measure.origin == "measured":
            ends = (math.exp(ends[0]), math.exp(ends[1]), math.exp(ends[2]))
        values.append(ends[0])
        low.append(None if math.isnan(error) else ends[1])
        high.append(None if math.isnan(error) else ends[2])
    known = None if probability is None or math.isnan(probability) else float(probability)
    return FrontPoint(
        arch_id=arm.arch_id,
        code=arm.code,
        roles=arm.roles,
        values=tuple(values),
        low=tuple(low),
        high=tuple(high),
        n=len(columns[0]),
        is_best=is_best,
        probability=known,
        word=_word(probability, known),
    )


def _word(probability: float | None, known: float | None) -> Word:
    if probability is None:
        return "over a limit"
    if known is None:
        return "unknown"
    if known >= CERTAIN:
        return "on the front"
    return "dominated" if known <= 1 - CERTAIN else "possibly"
