"""Does the probe foretell the objective better than a trivial predictor does?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from search.answers.arms import Arm, middle
from search.answers.intervals import Interval, rank_correlation
from search.answers.question import Question, kind_of

MIN_ARCHITECTURES = 8
PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Predictor:
    """Spearman's correlation of a number with the objective; None where it does not vary."""

    name: str
    correlation: Interval | None


@dataclass(frozen=True, slots=True)
class Predictors:
    """The probe and the trivial predictors over the same architectures.

    Attributes:
        n: architectures that have all of these numbers.
        found: one entry per predictor, the probe first; empty with too few architectures.
        better: trivial predictors whose correlation is at least as strong as the probe's.
    """

    n: int
    found: tuple[Predictor, ...]
    better: tuple[str, ...]


def predictors_of(arms: Sequence[Arm], question: Question) -> Predictors:
    """Correlates probe, params, FLOPs, attention layers and depth with the selection objective.

    Needs at least 8 architectures, all of which enter every correlation.
    """
    kind = kind_of(question.reference)
    columns: dict[str, Callable[[Arm], float | None]] = {
        PROBE: lambda arm: middle(row.probe for row in arm.explored),
        "params": lambda arm: arm.cost("params"),
        "FLOPs": lambda arm: arm.cost("flops"),
        "attention layers": lambda arm: float(arm.n_of(kind)),
        "depth": lambda arm: float(arm.n_layers),
    }
    table = []
    for arm in arms:
        numbers = [arm.selection_mean, *(read(arm) for read in columns.values())]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            table.append(known)
    if len(table) < MIN_ARCHITECTURES:
        return Predictors(len(table), (), ())
    objective, *rest = (list(column) for column in zip(*table, strict=True))
    found = tuple(
        Predictor(name, rank_correlation(column, objective, seed=question.seed))
        for name, column in zip(columns, rest, strict=True)
    )
    strength = {
        predictor.name: abs(predictor.correlation.estimate) if predictor.correlation else 0.0
        for predictor in found
    }
    better = tuple(
        name for name in strength if name != PROBE and strength[name] >= strength[PROBE] > 0
    )
    return Predictors(len(table), found, better)
