"""The verdicts of a listed study: each architecture against all-attention, corrected together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.contrasts import contrast_table
from search.report.sections import Room, Section
from search.wording import plural, sure_text

if TYPE_CHECKING:
    from search.answers.answer import Answer


def section(answer: Answer, room: Room | None) -> Section:
    """Every listed architecture against all-attention on the test split."""
    question, contrasts = answer.question, answer.contrasts
    if not contrasts:
        why = "all-attention of full depth is not listed, so there is nothing to hold against"
        return Section("Verdicts", lines=(why,))
    shown = contrasts if room is None else contrasts[: room.leaders]
    names = [
        f"{contrast.candidate}{' (pick)' if contrast.candidate_id == answer.pick else ''} - "
        f"{contrast.other}"
        for contrast in shown
    ]
    header, rows = contrast_table(shown, names, question, full=room is None)
    tolerance = f"tolerance {question.tolerance:g} {question.unit}".rstrip()
    sure = sure_text(answer.family.alpha)
    lines = [
        f"{tolerance}; all {plural(answer.family.confirmatory, 'contrast')} of the list together "
        f"are {sure} sure (Holm)"
    ]
    few = sum(contrast.has_few_df for contrast in contrasts)
    if few:
        lines.append(f"{few} of them rest on fewer than 6 degrees of freedom")
    if len(shown) < len(contrasts):
        lines.append(f"{len(contrasts) - len(shown)} more in search report --format markdown")
    if answer.family.provisional:
        lines.append("provisional: trials are still under way, and what they find may change this")
    return Section("Verdicts", header, rows, tuple(lines))
