"""Does the probe foretell the objective better than a trivial predictor does?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mixers.notation import kind_of
from search.answers.arms import Arm, middle
from search.answers.intervals import Interval, rank_correlation
from search.answers.question import Question

MIN_ARCHITECTURES = 8
PROBE_INIT = "probe as initialised"
PROBE = "probe after training"


@dataclass(frozen=True, slots=True)
class Predictor:
    """Spearman's correlation of a number with the objective; None where it does not vary.

    It is None too where some architecture lacks the number.
    """

    name: str
    correlation: Interval | None
    is_trivial: bool

    @property
    def strength(self) -> float:
        """Size of the correlation; 0 where there is none."""
        return abs(self.correlation.estimate) if self.correlation else 0.0


@dataclass(frozen=True, slots=True)
class Predictors:
    """The probe and the trivial predictors over the same architectures.

    Attributes:
        n: architectures that have the objective and a probe.
        found: one entry per predictor, the probes first; empty with too few architectures.
        better_than_init: trivial predictors that foretell at least as well as the probe of the
            untrained network.
        better: those that do at least as well as the probe after training.
    """

    n: int
    found: tuple[Predictor, ...]
    better_than_init: tuple[str, ...]
    better: tuple[str, ...]


def predictors_of(arms: Sequence[Arm], question: Question) -> Predictors:
    """Correlates the probes and what is known without training with the selection objective.

    Trivial predictors are params, FLOPs, static reach, depth and the layers of each kind of mixer;
    the first reading of the objective stands beside them. Needs at least 8 architectures.
    """
    known = [
        arm
        for arm in arms
        if arm.selection_mean is not None and middle(row.probe for row in arm.explored) is not None
    ]
    if len(known) < MIN_ARCHITECTURES:
        return Predictors(len(known), (), (), ())
    objective = [float(arm.selection_mean) for arm in known if arm.selection_mean is not None]
    found = []
    for name, (read, is_trivial) in columns_of(known, question).items():
        values = [read(arm) for arm in known]
        numbers = [value for value in values if value is not None]
        complete = len(numbers) == len(known)
        correlation = rank_correlation(numbers, objective, seed=question.seed) if complete else None
        found.append(Predictor(name, correlation, is_trivial))
    return Predictors(
        len(known), tuple(found), better_than(found, PROBE_INIT), better_than(found, PROBE)
    )


def columns_of(
    arms: Sequence[Arm], question: Question
) -> dict[str, tuple[Callable[[Arm], float | None], bool]]:
    """How to read each predictor, and whether it is known without any training or probing."""
    step = min((row.curve[0][0] for arm in arms for row in arm.explored if row.curve), default=0)
    reference = kind_of(question.reference)
    kinds = sorted({kind for arm in arms for kind in arm.kinds}, key=lambda k: (k != reference, k))

    def count_of(kind: str) -> Callable[[Arm], float | None]:
        return lambda arm: float(arm.n_of(kind))

    return {
        PROBE_INIT: (lambda arm: middle(row.probe_init for row in arm.explored), False),
        PROBE: (lambda arm: middle(row.probe for row in arm.explored), False),
        f"{question.objective} at step {step}": (
            lambda arm: middle(dict(row.curve).get(step) for row in arm.explored),
            False,
        ),
        "params": (lambda arm: arm.cost("params"), True),
        "FLOPs": (lambda arm: arm.cost("flops"), True),
        "reach": (static_reach, True),
        "depth": (lambda arm: float(arm.n_layers), True),
        **{f"{kind} layers": (count_of(kind), True) for kind in kinds},
    }


def static_reach(arm: Arm) -> float | None:
    """Share of the pairs of tokens that meet within the stack; None if that was not found."""
    for row in arm.rows:
        if row.route and "seen_after" in row.route:
            return float(row.route["seen_after"][-1] / row.route["n_pairs"])
    return None


def better_than(found: Sequence[Predictor], name: str) -> tuple[str, ...]:
    """Trivial predictors at least as strong as a probe; none where the probe says nothing."""
    strength = next(one.strength for one in found if one.name == name)
    return tuple(one.name for one in found if one.is_trivial and one.strength >= strength > 0)
