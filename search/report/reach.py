"""What the answer holds for and what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import plural, role_words

if TYPE_CHECKING:
    from search.answers.answer import Answer

ABOUT = "What the answer holds for, and what the budget did not allow to try."


def section(answer: Answer, room: Room | None) -> Section:
    """Task, space, recipe and baselines that were not trained."""
    question, reach = answer.question, answer.reach
    space = f" of a space of {question.space_size}" if question.space_size else ""
    device = f" on {reach.device}" if reach.device else ""
    holds = "task, size and length" if question.steps else "objective"
    lines = [
        f"{plural(reach.n_trained, 'architecture')} trained{space}; holds for this {holds}{device}"
    ]
    if question.recipe and answer.recipe is None:
        lines.append(f"one recipe for all: {question.recipe}")
    if reach.failed:
        names = ", ".join(map(role_words, reach.failed))
        lines.append(f"baselines whose runs ended without a result: {names}")
    if reach.untested:
        lines.append("baselines left out: " + ", ".join(map(role_words, reach.untested)))
    return Section("Reach", lines=tuple(lines), about=ABOUT)
