"""The verdicts on the test split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.answers.variance import few_words
from search.report import listed
from search.report.contrasts import contrast_table
from search.report.sections import Room, Section
from search.wording import OTHERS, joined, sure_text

if TYPE_CHECKING:
    from search.answers.answer import Answer


def section(answer: Answer, room: Room | None) -> Section:
    """What the candidate is held against, and what may be said of it."""
    question = answer.question
    if question.is_listed:
        return listed.section(answer, room)
    if not answer.contrasts:
        return Section("Verdicts", lines=("undecided: nothing to compare with was trained",))
    names = [
        f"{_role_of(answer, contrast.candidate_id)} - {OTHERS[contrast.against]}"
        for contrast in answer.contrasts
    ]
    header, rows = contrast_table(answer.contrasts, names, question, full=room is None)
    line = f"tolerance {question.tolerance:g} {question.unit}".rstrip()
    measured = [c for c in answer.contrasts if c.interval and c.interval.low is not None]
    if measured:
        read = all(contrast.evaluation for contrast in measured)
        line += (
            f"; intervals of the noise of {'seeds and test documents' if read else 'seeds alone'}"
        )
        line += f", verdicts {sure_text(answer.family.alpha)} sure together"
        line += f" (answer {answer.family.look} of this study)" if answer.family.look > 1 else ""
    untested = OTHERS.keys() - {contrast.against for contrast in answer.contrasts}
    if untested:
        line += "; not held against: " + ", ".join(OTHERS[name] for name in sorted(untested))
    lines = [line]
    if few := [OTHERS[contrast.against] for contrast in measured if contrast.has_few_df]:
        lines.append(f"{few_words(0)} against {joined(few)}: the noise itself is hardly known")
    if answer.family.provisional:
        lines.append("provisional: trials are still under way, and what they find may change this")
    return Section("Verdicts", header, rows, tuple(lines))


def _role_of(answer: Answer, arch_id: str) -> str:
    return "pick" if arch_id == answer.pick else "best hybrid"
