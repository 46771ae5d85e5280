"""What an architecture costs, and what it saves against another: counted and as measured."""

from __future__ import annotations

from dataclasses import dataclass

from search.answers.arms import Arm, Finalists


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over an architecture's runs; None where nothing was measured.

    Attributes:
        name: finalist name.
        code: the architecture.
        params: trainable parameters.
        flops: forward FLOPs of one sequence.
        step_s: seconds of a training step.
        latency_s: seconds of a forward pass.
    """

    name: str
    code: str
    params: float | None
    flops: float | None
    step_s: float | None
    latency_s: float | None


@dataclass(frozen=True, slots=True)
class Saving:
    """How many times cheaper the candidate is than another finalist: other / candidate.

    ``flops`` is the speed-up that counting promises, ``step`` and ``latency`` the measured ones.
    """

    against: str
    params: float | None
    flops: float | None
    step: float | None
    latency: float | None


def costs_of(finalists: Finalists) -> tuple[Cost, ...]:
    """The finalists' costs, each architecture once, under its first name."""
    seen: set[str] = set()
    costs = []
    for name, arm in finalists.named().items():
        if arm is not None and arm.arch_id not in seen:
            seen.add(arm.arch_id)
            costs.append(_cost(name, arm))
    return tuple(costs)


def savings_of(finalists: Finalists) -> tuple[Saving, ...]:
    """The candidate's savings against the reference and the shorter model."""
    candidate = finalists.candidate
    if candidate is None:
        return ()
    others = (("reference", finalists.reference), ("shorter", finalists.shorter))
    return tuple(
        _saving(name, _cost("candidate", candidate), _cost(name, arm))
        for name, arm in others
        if arm is not None and arm.arch_id != candidate.arch_id
    )


def _cost(name: str, arm: Arm) -> Cost:
    return Cost(
        name=name,
        code=arm.code,
        params=arm.cost("params"),
        flops=arm.cost("flops"),
        step_s=arm.cost("step_s"),
        latency_s=arm.cost("latency_s"),
    )


def _saving(against: str, candidate: Cost, other: Cost) -> Saving:
    return Saving(
        against=against,
        params=_ratio(other.params, candidate.params),
        flops=_ratio(other.flops, candidate.flops),
        step=_ratio(other.step_s, candidate.step_s),
        latency=_ratio(other.latency_s, candidate.latency_s),
    )


def _ratio(other: float | None, candidate: float | None) -> float | None:
    return other / candidate if other and candidate else None
