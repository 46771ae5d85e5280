"""Whether the pick solves associative recall, which the loss does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section

if TYPE_CHECKING:
    from search.answers.answer import Answer

ABOUT = (
    "A short task of its own: look up what stood beside a key earlier in the sequence. Attention "
    "is at home there, and a stack that cannot do it may still have the better loss on this task's "
    "data. All-attention is trained beside it: where it fails too, the training was too short to "
    "tell."
)


def section(answer: Answer, room: Room | None) -> Section:
    """What the recall check found for the pick."""
    found = answer.recall
    if found is None:
        return Section("Recall")
    line = f"{found.pick} {found.text}; accuracy on test, {found.steps} steps"
    return Section("Recall", lines=(line,), about=ABOUT)
