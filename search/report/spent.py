"""What the budget went to, phase by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import ABSENT, time_text

if TYPE_CHECKING:
    from search.answers.answer import Answer

PURPOSES = {
    "recipe": "try learning rates",
    "baseline": "train what to compare with",
    "screen": "measure effects by a design",
    "search": "look for better stacks",
    "confirm": "train the finalists again with fresh seeds, read on test",
    "listed": "train the listed stacks",
}


def section(answer: Answer, room: Room | None) -> Section:
    """Trials and training time of each phase; on pages only."""
    phases = answer.spent.phases
    if room is not None or not phases:
        return Section("Budget")
    header = ("phase", "what for", ">trials", ">reused", ">training time")
    rows = tuple(
        (
            cost.phase,
            PURPOSES.get(cost.phase, ""),
            str(cost.n),
            str(cost.reused) if cost.reused else ABSENT,
            time_text(cost.seconds) if cost.seconds else ABSENT,
        )
        for cost in phases
    )
    reused = "reused: the result of another study of this store, at no cost"
    lines = (reused,) if any(cost.reused for cost in phases) else ()
    return Section("Budget", header, rows, lines)
