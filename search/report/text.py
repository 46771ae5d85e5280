"""The answer on a terminal.

Returns text and computes nothing: every number comes from `search.answers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from search.report import study as study_part
from search.report import where
from search.report.chapters import terminal_parts
from search.report.paragraph import summary
from search.report.sections import Room, Section, to_text

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.report.about import About

MAX_LINES = 40
WIDTH = 100
MIN_WIDTH = 60
ROOMS = (  # tried in turn until the answer fits a terminal
    *(Room(leaders=n, layers=6, mixers=2) for n in (8, 7, 6, 5, 4)),
    *(Room(leaders=4, layers=n, mixers=1) for n in (6, 4, 2, 1)),
)
LESS = ("Selection", "Probe", "Front", "Noise floor", "By layer", "Training", "Costs", "Reach")


def render(answer: Answer, about: About, *, width: int = WIDTH) -> str:
    """The answer as plain text, at most 40 lines on a terminal of 100 columns.

    Args:
        answer: the answer.
        about: which study it is of, and where its rows are.
        width: columns of the terminal.
    """
    text = ""
    # Whoever asks for several objectives asks for the front.
    kept = {"Front"} if len(answer.question.measures) > 1 else set()
    for room, left_out in _fits():
        less = set(left_out) - kept
        parts = [part for part in _sections(answer, about, room) if part.title not in less]
        text = to_text(parts, max(width, MIN_WIDTH))
        if text.count("\n") <= MAX_LINES:
            break
    return text


def _fits() -> Iterator[tuple[Room, tuple[str, ...]]]:
    """Less and less room, then fewer and fewer parts."""
    for room in ROOMS:
        yield room, ()
    for n in range(1, len(LESS) + 1):
        yield ROOMS[-1], LESS[:n]


def _sections(answer: Answer, about: About, room: Room) -> list[Section]:
    parts = [Section("Answer", lines=(summary(answer),)), study_part.section(answer, about.study)]
    if answer.leaders:
        parts += terminal_parts(answer, room)
    parts.append(where.section(answer, about))
    return [part for part in parts if part]
