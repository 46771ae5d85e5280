"""What a budget buys, before any of it is spent: trials, hours, memory and what can be proved.

The dearest and the cheapest stack of the space are timed for a few steps; all others lie between.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.answers.family import FIRST_LEVEL
from search.answers.intervals import provable, runs_needed
from search.errors import InputError, NothingThereError
from search.phases import left_out, n_runs, quotas
from search.phases.finalists import repeats_of_first
from search.phases.rungs import cost_in_trials
from search.planning.space_route import SpaceRoute, space_route
from search.planning.stack_costs import StackCost, cost_of, extremes
from search.rows import Phase, TrialRow
from search.spec.baselines import baselines
from search.spec.budget import Budget, training_flops
from search.spec.listed import is_listed, n_stacks, n_trainings
from search.spec.space import Labels
from search.spec.sweep import Sweep

if TYPE_CHECKING:
    from search.spec.study import StudySpec
    from search.store.repo import Store

FEWEST_REPEATS = 2
FEWEST_DEGREES = 2
SHORT_BASELINE_PLACE = 5


@dataclass(frozen=True)
class Plan:
    """What a budget buys.

    Attributes:
        study: Name of the study.
        budget: The budget.
        done: Trials that the study has already.
        dearest: The stack of the most FLOPs in the space.
        cheapest: The stack of the fewest.
        trials: Fewest and most new trials.
        seconds: Fewest and most seconds they take.
        phases: How the budget's trials (at their fewest) are split.
        left_out: Baselines that do not fit.
        repeats: Fresh seeds that both the pick and the reference get.
        sigma: Standard deviation of repeats, in the objective's unit.
        degrees: Degrees of freedom behind `sigma`; 0 where it is assumed to equal the tolerance.
        smallest_effect: Smallest difference that can be proved; None with too few repeats.
        repeats_for_tolerance: Repeats per side that would prove a difference of the tolerance; None
            where no number in reach would.
        route: What the architectures of the space let tokens see.
    """

    study: str
    budget: Budget
    done: int
    dearest: StackCost
    cheapest: StackCost
    trials: tuple[int, int]
    seconds: tuple[float, float]
    phases: Mapping[Phase, int]
    left_out: tuple[str, ...]
    repeats: int
    sigma: float
    degrees: int
    smallest_effect: float | None
    repeats_for_tolerance: int | None
    route: SpaceRoute

    @property
    def speed_ratio_flops(self) -> float:
        """How many times the dearest stack's FLOPs are those of the cheapest: a guide only."""
        return self.dearest.flops / max(1, self.cheapest.flops)

    @property
    def speed_ratio_measured(self) -> float:
        """How many times longer a step of the dearest stack takes, at the study's shapes."""
        return self.dearest.step_s / self.cheapest.step_s

    @property
    def memory_bytes(self) -> int:
        """The larger of the two stacks' peak memories."""
        return max(self.dearest.peak_memory_bytes, self.cheapest.peak_memory_bytes)


def plan_study(
    study: StudySpec, budget: Budget, *, store: Store | None = None, name: str | None = None
) -> Plan:
    """Plans a run; starts and stores nothing.

    Args:
        study: The study.
        budget: What may be spent.
        store: Where earlier trials of the study would be.
        name: The study's name.

    Raises:
        InputError: The data is wrong, or the objective is an own function, which cannot be timed.
        RunFailedError: One of the two stacks cannot be trained.
    """
    from search.engine.assembly import make_training_runners
    from search.engine.preparing import prepare
    from search.settings import settings
    from search.tasks.objective import ObjectiveConfig

    if isinstance(study.task, ObjectiveConfig):
        raise InputError(
            f"a plan times training steps; the function {study.task.name!r} cannot be timed ahead"
        )
    local = settings()
    prepare(study, local.cache_dir)
    named = name or study.default_name
    rows, busy_s = earlier(store, named)
    (bench,) = make_training_runners(study, local, workers=1)
    try:
        costs = [cost_of(study, study.encoder_spec(mixers), bench) for mixers in extremes(study)]
    finally:
        bench.close()
    return make_plan(study, budget, costs[0], costs[1], name=named, rows=rows, busy_s=busy_s)


def make_plan(
    study: StudySpec,
    budget: Budget,
    dearest: StackCost,
    cheapest: StackCost,
    *,
    name: str,
    rows: Sequence[TrialRow] = (),
    busy_s: float = 0.0,
) -> Plan:
    """Works out a plan from two measured stacks and the rows that are there; a pure function."""
    trials, seconds = amounts(study, budget, dearest, cheapest, rows, busy_s)
    n_trials = len(rows) + trials[0]
    phases, roles, repeats = shares_of(study, n_trials)
    sigma, degrees = repeat_sd(rows, study.objective)
    if not degrees:
        sigma = study.tolerance
    return Plan(
        study=name,
        budget=budget,
        done=len(rows),
        dearest=dearest,
        cheapest=cheapest,
        trials=trials,
        seconds=seconds,
        phases=phases,
        left_out=left_out(roles, roles[: phases["baseline"]]),
        repeats=repeats,
        sigma=sigma,
        degrees=degrees,
        smallest_effect=smallest_effect(sigma, repeats),
        repeats_for_tolerance=runs_needed(sigma, sigma, study.tolerance, FIRST_LEVEL),
        route=space_route(study),
    )


def shares_of(study: StudySpec, n_trials: int) -> tuple[Mapping[Phase, int], tuple[str, ...], int]:
    """Returns trials by phase, the roles of the baselines, and the pick's and reference's seeds."""
    if is_listed(study):
        everything: dict[Phase, int] = {"baseline": 0, "search": 0, "confirm": n_trials}
        return everything, (), n_trials // n_stacks(study)
    listed = baselines(study)
    first = quotas(n_trials, len(listed))["baseline"]
    n_screen = n_runs(study, [baseline.labels for baseline in listed[:first]])
    sweep = Sweep.of(study)
    n_recipe = 0 if sweep is None else len(tuple(sweep.runs()))
    phases = quotas(n_trials, len(listed), n_screen, n_recipe)
    return phases, tuple(baseline.role for baseline in listed), repeats_of(phases)


def amounts(
    study: StudySpec,
    budget: Budget,
    dearest: StackCost,
    cheapest: StackCost,
    rows: Sequence[TrialRow],
    busy_s: float,
) -> tuple[tuple[int, int], tuple[float, float]]:
    """Returns fewest and most trials, and fewest and most seconds, that are left of a budget."""
    low, high = sorted((cheapest.trial_s, dearest.trial_s))
    if is_listed(study) and budget.unit == "trials":
        budget = Budget("trials", min(budget.amount, n_trainings(study)))
    if budget.unit == "trials":
        left = max(0, int(budget.amount) - len(rows))
        whole = whole_trainings(study, len(rows) + left) - whole_trainings(study, len(rows))
        return (left, left), (whole * low, whole * high)
    if budget.unit == "seconds":
        left_s = max(0.0, budget.amount - busy_s)
        return (most_trials(study, left_s / high), most_trials(study, left_s / low)), (
            left_s,
            left_s,
        )
    steps = study.training.steps
    spent = sum(
        flops_of(study, row.flops) * (row.steps or steps) // steps
        for row in rows
        if row.flops and not row.reused_from
    )
    left_flops = max(0.0, budget.amount - spent)
    of_dearest = left_flops / flops_of(study, dearest.flops)
    of_cheapest = left_flops / max(1, flops_of(study, cheapest.flops))
    fewest, most = most_trials(study, of_dearest), most_trials(study, of_cheapest)
    return (fewest, most), (
        whole_trainings(study, fewest) * dearest.trial_s,
        whole_trainings(study, most) * cheapest.trial_s,
    )


def whole_trainings(study: StudySpec, n_trials: int) -> float:
    """Returns how many whole trainings a budget of trials costs; rungs cut those of the search."""
    if not study.rungs:
        return float(n_trials)
    return cost_in_trials(n_trials, shares_of(study, n_trials)[0]["search"], study)


def most_trials(study: StudySpec, trainings: float) -> int:
    """Returns the largest number of trials that cost no more than so many whole trainings."""
    if not study.rungs:
        return int(trainings)
    # A trial costs at least the share of a training up to the first rung.
    low, high = 0, int(trainings * study.training.steps / study.rungs[0]) + 1
    while low < high:
        middle = (low + high + 1) // 2
        if whole_trainings(study, middle) <= trainings:
            low = middle
        else:
            high = middle - 1
    return low


def flops_of(study: StudySpec, forward: int) -> int:
    """Returns the training FLOPs of a stack of the study."""
    return training_flops(forward, steps=study.training.steps, batch_size=study.training.batch_size)


def repeats_of(phases: Mapping[Phase, int]) -> int:
    """Returns how many fresh seeds both the pick and the reference get: they go first in turn."""
    finalists = 4 if phases["baseline"] >= SHORT_BASELINE_PLACE else 3
    return repeats_of_first(finalists, phases["confirm"])


def smallest_effect(sigma: float, repeats: int) -> float | None:
    """Returns the smallest difference that so many repeats per side prove four times in five."""
    if repeats < FEWEST_REPEATS:
        return None
    return provable(sigma, repeats, FIRST_LEVEL)


def repeat_sd(rows: Iterable[TrialRow], objective: str) -> tuple[float, int]:
    """Returns the pooled standard deviation of repeats and its degrees of freedom.

    Zero degrees where fewer than two are there: too little to plan with.
    """
    by_stack: dict[Labels, list[float]] = {}
    for row in rows:
        if row.state == "completed" and objective in row.selection:
            by_stack.setdefault(row.mixers, []).append(row.selection[objective])
    repeated = [values for values in by_stack.values() if len(values) > 1]
    degrees = sum(len(values) - 1 for values in repeated)
    if degrees < FEWEST_DEGREES:
        return 0.0, 0
    squares = sum(statistics.variance(values) * (len(values) - 1) for values in repeated)
    return math.sqrt(squares / degrees), degrees


def earlier(store: Store | None, name: str) -> tuple[list[TrialRow], float]:
    """Returns the trials and the seconds that a study of this name has spent already."""
    if store is None:
        return [], 0.0
    try:
        return store.rows(name, curves=False), store.study(name).busy_s
    except NothingThereError:
        return [], 0.0
