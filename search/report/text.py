"""The answer in words and tables: terminal text and Markdown.

Returns text and computes nothing: every number comes from `search.answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.api import DEFAULT_STORE
from search.report import study as study_part
from search.report import where
from search.report.parts import PARTS
from search.report.sections import Room, Section, to_markdown, to_text

if TYPE_CHECKING:
    from search.answers.answer import Answer

MAX_LINES = 40
WIDTH = 100
MIN_WIDTH = 60
ROOMS = (  # tried in turn until the answer fits a terminal
    *(Room(leaders=n, layers=6, mixers=2) for n in (8, 7, 6, 5, 4)),
    *(Room(leaders=4, layers=n, mixers=1) for n in (6, 4, 2, 1)),
)


def render(answer: Answer, *, study: str, store: str = DEFAULT_STORE, width: int = WIDTH) -> str:
    """The answer as plain text, at most 40 lines on a terminal of 100 columns.

    Args:
        answer: the answer.
        study: the study's name.
        store: the store's URL; a password in it is not shown.
        width: columns of the terminal.
    """
    text = ""
    for room in ROOMS:
        parts = sections(answer, study=study, store=store, room=room)
        text = to_text(parts, max(width, MIN_WIDTH))
        if text.count("\n") <= MAX_LINES:
            break
    return text


def render_markdown(answer: Answer, *, study: str, store: str = DEFAULT_STORE) -> str:
    """The answer as Markdown, with all the tables."""
    return to_markdown(sections(answer, study=study, store=store), f"Answer of {study}")


def sections(
    answer: Answer, *, study: str, store: str = DEFAULT_STORE, room: Room | None = None
) -> list[Section]:
    """The answer as blocks of text, in reading order.

    Args:
        answer: the answer.
        study: the study's name.
        store: the store's URL.
        room: how much of the long parts to show; None for all.
    """
    parts = [study_part.section(answer, study)]
    if answer.leaders:
        parts += [section(answer, room) for section in PARTS]
    parts.append(where.section(answer, study, store))
    return [part for part in parts if part.rows or part.lines]
