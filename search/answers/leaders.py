"""The leaderboard: the best architectures, every finalist and every baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mixers.notation import kind_of
from search.answers.arms import Arm, Finalists, arm_of, value_of
from search.answers.question import Question
from search.rows import TrialRow
from search.spec.space import Labels

MAX_LEADERS = 20


@dataclass(frozen=True, slots=True)
class Leader:
    """A line of the leaderboard: the best on the selection split, all finalists and baselines.

    ``names`` are what the architecture is as a finalist and as a baseline. ``metrics`` holds the
    other recorded metrics on the selection split, of the runs that ``selection`` is the mean of.
    ``rate`` is the learning rate where it is not the study's own: such a line stands beside the
    order, before the one that has its ``rank``.
    """

    rank: int
    arch_id: str
    code: str
    notation: str
    names: tuple[str, ...]
    is_baseline: bool
    n_layers: int
    n_attention: int
    n_cheap: int
    selection: float
    n_selection: int
    test: float | None
    test_sd: float | None
    n_test: int
    metrics: Mapping[str, float]
    params: float | None
    flops: float | None
    latency_s: float | None
    rate: float | None = None


def leaders_of(arms: Sequence[Arm], finalists: Finalists, question: Question) -> tuple[Leader, ...]:
    """Returns the leaderboard, best first."""
    scored = [(mean, arm) for arm in arms if (mean := arm.selection_mean) is not None]
    scored.sort(key=lambda pair: question.sign * pair[0])
    return tuple(
        _leader(arm, mean, question, rank, (*finalists.names_of(arm.arch_id), *arm.roles))
        for rank, (mean, arm) in enumerate(scored, start=1)
        if rank <= MAX_LEADERS or arm.roles or finalists.names_of(arm.arch_id)
    )


def at_own_rate(
    rows: Sequence[TrialRow], leaders: Sequence[Leader], question: Question
) -> Leader | None:
    """Returns all-attention at the best rate of the sweep; None where that is the study's own.

    Args:
        rows: all trials of the study, of every recipe.
        leaders: the leaderboard.
        question: the study's facts.
    """
    sweep = question.sweep
    if sweep is None:
        return None
    layers = (question.reference,) * question.n_layers
    rate = sweep.best_rates(rows).get(layers, sweep.shared)
    if rate == sweep.shared:
        return None
    arm = arm_of([row for row in rows if _is_run(row, layers, rate)], question)
    mean = arm.selection_mean
    if mean is None:
        return None
    rank = 1 + sum(question.sign * (row.selection - mean) < 0 for row in leaders)
    return _leader(arm, mean, question, rank, ("reference",), rate=rate)


def _is_run(row: TrialRow, layers: Labels, rate: float) -> bool:
    is_same = row.mixers == layers and row.recipe.get("learning_rate") == rate
    return is_same and row.state == "completed"


def _leader(
    arm: Arm,
    mean: float,
    question: Question,
    rank: int,
    names: Sequence[str],
    *,
    rate: float | None = None,
) -> Leader:
    n_attention = arm.n_of(kind_of(question.reference))
    return Leader(
        rank=rank,
        arch_id=arm.arch_id,
        code=arm.code,
        notation=arm.notation,
        names=tuple(dict.fromkeys(names)),
        is_baseline=bool(arm.roles) or rate is not None,
        n_layers=arm.n_layers,
        n_attention=n_attention,
        n_cheap=arm.n_layers - n_attention,
        selection=mean,
        n_selection=len(arm.selection),
        test=arm.test_mean,
        test_sd=arm.test_sd,
        n_test=len(arm.test),
        metrics=_other_metrics(arm, question),
        params=arm.cost("params"),
        flops=arm.cost("flops"),
        latency_s=arm.cost("latency_s"),
        rate=rate,
    )


def _other_metrics(arm: Arm, question: Question) -> dict[str, float]:
    found = {}
    rows = [row for row in arm.rows if question.is_listed or row.phase != "confirm"]
    for name in question.metrics:
        read = [value_of(row.selection, name) for row in rows]
        values = [value for value in read if value is not None]
        if values:
            found[name] = fmean(values)
    return found
