"""The verdicts on the test split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.report.wording import OTHERS, difference_text, in_unit

if TYPE_CHECKING:
    from search.answers.answer import Answer


def section(answer: Answer, room: Room | None) -> Section:
    """What the candidate is held against, and what may be said of it."""
    question = answer.question
    if not answer.contrasts:
        return Section("Verdicts", lines=("undecided: nothing to compare with was trained",))
    rows = tuple(
        (
            f"{_role_of(answer, contrast.candidate_id)} - {OTHERS[contrast.against]}",
            difference_text(contrast.interval, question),
            contrast.verdict.text,
        )
        for contrast in answer.contrasts
    )
    header = ("on the test split", f">difference{in_unit(question)}", "verdict")
    line = f"tolerance {question.tolerance:g} {question.unit}".rstrip()
    levels = [
        c.interval.level for c in answer.contrasts if c.interval and c.interval.low is not None
    ]
    if levels:
        line += f"; Welch intervals of {100 * levels[0]:.3g} %, 95 % together, of seed noise alone"
    untested = OTHERS.keys() - {contrast.against for contrast in answer.contrasts}
    if untested:
        line += "; not held against: " + ", ".join(OTHERS[name] for name in sorted(untested))
    return Section("Verdicts", header, rows, (line,))


def _role_of(answer: Answer, arch_id: str) -> str:
    return "pick" if arch_id == answer.pick else "best hybrid"
