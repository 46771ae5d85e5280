"""A plan in words, for `search run --dry-run`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from search.followups.recall_check import flops_of_check, is_wanted, reference_stack
from search.phases.rungs import n_at_rungs, search_steps
from search.planning.plan import flops_of
from search.spec.budget import duration_words
from search.spec.listed import is_listed, n_stacks, n_trainings, seeds_of
from search.spec.recall import short_recall
from search.spec.space import Space
from search.spec.sweep import Sweep
from search.store.routes import sees_words, unseen_words
from search.wording import role_words, scaled, time_text

if TYPE_CHECKING:
    from search.planning.plan import Plan
    from search.planning.space_route import SpaceRoute
    from search.planning.stack_costs import StackCost
    from search.spec.study import StudySpec

MEGABYTE = 1e6
LARGEST_WRITTEN = 10**9


def plan_lines(plan: Plan, study: StudySpec) -> list[str]:
    """Writes what a budget buys, one fact a line; the numbers are the plan's."""
    unit = f" {study.unit}" if study.unit else ""
    phases = ", ".join(f"{n} {phase}" for phase, n in plan.phases.items() if n)
    lines = [
        f"study {plan.study}: {plan.done} trials so far, budget {plan.budget}; nothing was started",
        f"buys {span(*plan.trials)} new trials in {time_span(*plan.seconds)}: "
        + ("earlier ones included, " if plan.done else "")
        + (phases or "none"),
        f"dearest stack {stack_words(plan.dearest)}",
        f"cheapest stack {stack_words(plan.cheapest)}",
        f"ratio {plan.speed_ratio_flops:.2f} by FLOPs (a guide), "
        f"{plan.speed_ratio_measured:.2f} as measured at the study's shapes",
        f"memory up to {plan.memory_bytes / MEGABYTE:.0f} MB a training process",
    ]
    size = Space.of(study).size
    if plan.phases["search"] > size:
        lines.append(f"the space holds {size} architectures: the run ends when they are trained")
    if is_listed(study):
        lines.append(
            f"{n_stacks(study)} architectures x {seeds_of(study)} seeds, seed by seed: the run "
            f"ends after {n_trainings(study)} trials"
        )
    lines.append(space_route_words(plan.route, study.sizes.max_seq_len))
    if plan.left_out:
        lines.append(f"baselines left out: {', '.join(map(role_words, plan.left_out))}")
    if (sweep := Sweep.of(study)) is not None:
        lines.append(sweep_words(sweep, plan.phases.get("recipe", 0)))
    if study.rungs and plan.phases["search"]:
        lines.append(rung_words(study, plan.phases["search"]))
    source = (
        f"from {plan.degrees} degrees of freedom stored"
        if plan.degrees
        else "assumed equal to the tolerance until repeats are stored"
    )
    lines.append(f"noise of repeats {plan.sigma:.3g}{unit}, {source}")
    if plan.smallest_effect is None:
        lines.append("too few repeats to prove anything: every verdict will be undecided")
    else:
        lines.append(
            f"{plan.repeats} repeats a side can prove a difference of {plan.smallest_effect:.2g}"
            f"{unit} or more"
        )
    lines.append(
        f"a difference of the tolerance ({study.tolerance:g}{unit}) needs "
        f"{plan.repeats_for_tolerance or 'more than 100,000'} repeats a side"
    )
    if is_wanted(study) and plan.phases["confirm"]:
        lines.append(_recall_words(plan, study))
    return lines


def space_route_words(route: SpaceRoute, seq_len: int) -> str:
    """Says in how many architectures all tokens meet, after how many layers, and where fewest do.

    Args:
        route: What was counted.
        seq_len: Tokens of the study's input.
    """
    looked_at = "" if route.n_tokens == seq_len else f" of the first {route.n_tokens} tokens"
    beginning = f"route{looked_at}:"
    if route.problem:
        return f"{beginning} unknown, {route.problem}; see 'search mixers route STACK'"
    whole, sees = count_text(route.architectures), sees_words(causal=route.causal)
    if route.full_after is None:
        words = f"{sees} in none of {whole} architectures"
    else:
        is_all = route.full == route.architectures > 1
        some = "all" if is_all else f"{count_text(route.full)} of"
        after = f"{span(*route.full_after)} layer{'' if route.full_after == (1, 1) else 's'}"
        words = f"{sees} in {some} {whole} architectures, after {after}"
    least = f"; in {route.least} {unseen_words(route.route)}" if route.least else ""
    return f"{beginning} {words}{least}"


def count_text(n: int) -> str:
    """Writes a count that may be too large for a float."""
    return f"{n:,}" if n < LARGEST_WRITTEN else f"{Decimal(n):.2e}"


def sweep_words(sweep: Sweep, n_runs: int) -> str:
    """Says what of a sweep fits into the budget, and what follows where rates are apart."""
    rates = ", ".join(f"{rate:g}" for rate in sweep.rates)
    return (
        f"sweep of learning rates {rates}: {n_runs} of its {len(tuple(sweep.runs()))} runs beside "
        "the baselines; where the best rates are apart, a repeat is trained at each of them"
    )


def rung_words(study: StudySpec, n_search: int) -> str:
    """Says how many trials of the search go how far, and what that comes to."""
    _, *going_on = n_at_rungs(n_search, study)
    parts = ", ".join(
        f"about {n} past step {rung}" for n, rung in zip(going_on, study.rungs, strict=True)
    )
    whole = search_steps(n_search, study) / study.training.steps
    return (
        f"rungs: of {n_search} trials of the search {parts}; together they cost as much as "
        f"{whole:.3g} whole trainings"
    )


def _recall_words(plan: Plan, study: StudySpec) -> str:
    """Announces the recall check, which is no part of the budget; its time is scaled by FLOPs."""
    check = short_recall(study, [reference_stack(study)])
    n_runs = 2 * seeds_of(check)
    costs, trial = 2 * flops_of_check(check), max(1, flops_of(study, plan.dearest.flops))
    if costs > trial * (plan.done + plan.trials[1]):
        return "recall check of the pick: left out, it would cost more than the study itself"
    if plan.budget.unit == "seconds":
        return "recall check of the pick: in the time that is left, else left out"
    about = duration_words(study.training.steps * plan.dearest.step_s * costs / trial)
    return (
        f"recall check of the pick and of all-attention: {n_runs} x {check.training.steps} steps, "
        f"about {about} beside the budget; `recall: false` leaves it out"
    )


def stack_words(cost: StackCost) -> str:
    """Describes a timed stack."""
    return (
        f"{cost.notation}: {scaled(cost.flops)} FLOPs a sequence, "
        f"{time_text(cost.step_s)} a step, {duration_words(cost.trial_s)} a trial"
    )


def span(low: int, high: int) -> str:
    """Writes a range of numbers."""
    return str(low) if low == high else f"{low} to {high}"


def time_span(low: float, high: float) -> str:
    """Writes a range of durations, the shorter first."""
    first, last = duration_words(min(low, high)), duration_words(max(low, high))
    return first if first == last else f"{first} to {last}"
