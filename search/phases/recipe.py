"""The phase of the recipe: pure stacks at other learning rates than the study's."""

from __future__ import annotations

from collections.abc import Sequence

from search.phases.base import Ask, Choice
from search.phases.history import too_large
from search.rows import Phase, TrialRow
from search.spec.sweep import Sweep


class RecipePhase:
    """Trains the runs of the sweep that have no trial, stack by stack."""

    phase: Phase = "recipe"

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether a run of the sweep has no trial yet."""
        return self.choose(rows, Ask(0)) is not None

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """Returns the next run without a trial, of stacks that the memory holds."""
        taken = {
            Choice(row.mixers, recipe=row.recipe).key
            for row in rows
            if row.mixers and row.seed_index == 0
        }
        too_much = too_large(rows)
        choices = (
            Choice(stack.labels, stack.role, recipe=recipe)
            for stack, recipe in self.sweep.runs()
            if stack.labels not in too_much
        )
        return ask.turn(choice for choice in choices if choice.key not in taken)
