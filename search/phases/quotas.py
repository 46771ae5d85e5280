"""What each part of a budget is for: baselines, then search, then confirmation.

Baselines take at most a third, in the order of their list; the last third confirms finalists with
fresh seeds on the test split; what lies between is search. Where learning rates are swept, half
of what lies between is for that. Where the strategy has a design, its
runs come first in the search's part, all of it if need be, and what they leave is for the search
proper. Pure functions of counts and rows.

A run that was stopped goes on exactly as it would have gone. A budget that is raised later is
shared out anew as a whole: 6 trials and then 12 repeat nothing, but spend the first six on other
phases than 12 at once do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from search.rows import Counts, Phase
from search.spec.budget import Budget

MIN_TRIALS_TO_CONFIRM = 6
PHASES_IN_ORDER: tuple[Phase, ...] = ("baseline", "recipe", "search", "confirm")


@dataclass(frozen=True)
class Agenda:
    """What is left to do in each phase, as far as the rows show.

    Attributes:
        listed_baselines: length of the baselines' list (trained or not).
        open_phases: the phases that still have something to train: a baseline of the list not
            trained yet, an architecture of the space not trained yet, finalists to confirm.
        is_listed: the study trains a list; all of its budget is for confirmation.
        n_recipe: runs of the sweep beside the baselines (trained or not).
    """

    listed_baselines: int
    open_phases: frozenset[Phase]
    is_listed: bool = False
    n_recipe: int = 0


def quotas(
    n_trials: int, listed_baselines: int, n_screen: int = 0, n_recipe: int = 0
) -> dict[Phase, int]:
    """Splits a budget of trials into phases; the parts sum to ``n_trials``.

    Args:
        n_trials: The budget.
        listed_baselines: Length of the baselines' list.
        n_screen: Runs of a design to set apart from the search's part; those that fit.
        n_recipe: Runs of a sweep beside the baselines; they may take half of what lies between
            baselines and confirmation.
    """
    baselines = min(n_trials // 3, listed_baselines)
    confirm = n_trials // 3 if n_trials >= MIN_TRIALS_TO_CONFIRM else 0
    middle = n_trials - baselines - confirm
    recipe = min(n_recipe, middle // 2)
    middle -= recipe
    screen = min(n_screen, middle)
    apart: dict[Phase, int] = {"recipe": recipe} if recipe else {}
    apart |= {"screen": screen} if screen else {}
    return {"baseline": baselines, **apart, "search": middle - screen, "confirm": confirm}


def next_phase(budget: Budget, counts: Counts, agenda: Agenda) -> Phase | None:
    """Chooses the phase of the next trial, or None where nothing may or can start.

    A share that a phase cannot use (no baseline is missing, nothing to confirm) goes to search.
    Where the space is used up, confirmation keeps to its share, so that the run ends.
    """
    if budget.is_used_up(counts):
        return None
    if agenda.is_listed:
        return "confirm" if "confirm" in agenda.open_phases else None
    if budget.unit == "trials":
        wanted = _wanted_by_count(int(budget.amount), counts.by_phase, agenda)
    else:
        wanted = _wanted_by_share(budget.spent(counts) / budget.amount, agenda)
    if wanted is not None:
        return wanted
    if (exploring := _exploring(agenda)) is not None:
        return exploring
    return "confirm" if _may_confirm_early(budget, counts, agenda) else None


def _wanted_by_count(n: int, started: Mapping[str, int], agenda: Agenda) -> Phase | None:
    shares = quotas(n, agenda.listed_baselines, n_recipe=agenda.n_recipe)
    overrun = max(0, started.get("recipe", 0) - shares.get("recipe", 0))
    of_search = started.get("search", 0) + started.get("screen", 0) + overrun
    used = {**started, "search": of_search}
    for phase in PHASES_IN_ORDER:
        wanted = _exploring(agenda) if phase == "search" else phase
        if wanted in agenda.open_phases and used.get(phase, 0) < shares.get(phase, 0):
            return wanted
    return None


def _wanted_by_share(spent: float, agenda: Agenda) -> Phase | None:
    # The first training may take most of a short time; nothing is decided without a second one.
    is_early = spent < 1 / 3 or "confirm" not in agenda.open_phases
    if is_early and "baseline" in agenda.open_phases:
        return "baseline"
    if spent < 1 / 2 and "recipe" in agenda.open_phases:
        return "recipe"
    if spent < 2 / 3:
        return _exploring(agenda)
    return "confirm" if "confirm" in agenda.open_phases else None


def _exploring(agenda: Agenda) -> Phase | None:
    """The design while it has runs left, else the search, else what is left of the sweep."""
    order: tuple[Phase, ...] = ("screen", "search", "recipe")
    return next((phase for phase in order if phase in agenda.open_phases), None)


def _may_confirm_early(budget: Budget, counts: Counts, agenda: Agenda) -> bool:
    if budget.unit == "trials" or "confirm" not in agenda.open_phases:
        return False
    confirmed = counts.by_phase.get("confirm", 0)
    return 2 * confirmed < counts.started - confirmed


def left_out(roles: Collection[str], trained: Collection[str]) -> tuple[str, ...]:
    """Returns the baselines of the list that the budget left out, in order."""
    return tuple(role for role in roles if role not in trained)
