"""How many layers may be cheap, then whether their place matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report import design
from search.report.sections import Room, Section
from search.wording import difference_text, value_text

if TYPE_CHECKING:
    from search.answers.answer import Answer

MAX_RANGES = 6


def section(answer: Answer, room: Room | None) -> Section:
    """How many layers may be cheap, then whether their place matters."""
    if answer.design is not None:
        return design.count_section(answer, answer.design, room)
    question = answer.question
    what = f"selection {question.objective} by number of layers without attention"
    lines = [_position(answer)]
    if room is not None:
        cells = [
            f"{row.n_cheap}: {value_text(row.mean, question)}"
            + (
                f" ({value_text(row.low, question)}..{value_text(row.high, question)}, n {row.n})"
                if row.n > 1 and len(answer.counts) <= MAX_RANGES
                else ""
            )
            for row in answer.counts
        ]
        return Section("Cheap layers", lines=(f"{what}: " + "; ".join(cells), *lines))
    header = (">layers without attention", ">architectures", ">mean", ">lowest", ">highest")
    rows = tuple(
        (
            str(row.n_cheap),
            str(row.n),
            *(value_text(value, question) for value in (row.mean, row.low, row.high)),
        )
        for row in answer.counts
    )
    return Section("Cheap layers", header, rows, (f"{what}; exploratory", *lines))


def _position(answer: Answer) -> str:
    position = answer.position
    if position is None:
        return "their place, given the number: undecided (no pair was trained)"
    reason = f" ({position.reason})" if position.reason else ""
    return (
        f"their place, given the number: {position.first} - {position.last} "
        f"{difference_text(position.interval, answer.question)}: {position.word}{reason}"
    )
