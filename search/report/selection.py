"""How much of the lead was luck of the choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import in_unit, signed

if TYPE_CHECKING:
    from search.answers.answer import Answer

ABOUT = (
    "The best of many looks better than it is. The lead where the stack was chosen is "
    "therefore set beside its lead with fresh seeds on unseen data."
)


def section(answer: Answer, room: Room | None) -> Section:
    """The lead over all-attention where the stack was chosen, and with fresh seeds on test."""
    found, question = answer.shrinkage, answer.question
    if found is None:
        return Section("Selection")
    seeds = "the same" if question.is_listed else "fresh"
    expected = ""
    if found.expected is not None:
        expected = f" (to be expected from those readings: {signed(found.expected, question)})"
    line = (
        f"lead of {found.candidate} over all-attention{in_unit(question)}: "
        f"{signed(found.selection, question)} where it was chosen{expected}, "
        f"{signed(found.test, question)} on test with {seeds} seeds"
    )
    return Section("Selection", lines=(line,), about=ABOUT)
