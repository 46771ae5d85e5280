"""Blocks of a report and how they are set as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

LABEL_WIDTH = 13


@dataclass(frozen=True)
class Room:
    """How much of the long parts fits: rows of the leaderboard, layers, mixers in a layer."""

    leaders: int
    layers: int
    mixers: int


@dataclass(frozen=True)
class Section:
    """A titled block: an optional table, then sentences.

    Attributes:
        title: one or two words; stands in the margin.
        header: column names; one that starts with ``>`` is aligned to the right.
        rows: cells as text.
        lines: sentences after the table, one a line.
        code: commands or a file, set as they are; pages only.
        about: what the reader sees here and why it matters; pages only.

    A section that says nothing is false.
    """

    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    code: str = ""
    about: str = ""

    def __bool__(self) -> bool:
        return bool(self.rows or self.lines or self.code)


def to_text(sections: Sequence[Section], width: int = 100) -> str:
    """Sets the sections as plain text, titles in the margin."""
    lines: list[str] = []
    for section in sections:
        body = _text_table(section) + [
            wrapped
            for line in section.lines
            for wrapped in textwrap.wrap(
                line, width - LABEL_WIDTH, subsequent_indent="  ", break_on_hyphens=False
            )
        ]
        margins = [section.title, *[""] * (len(body) - 1)]
        lines += [
            f"{margin:<{LABEL_WIDTH}}{text}".rstrip()
            for margin, text in zip(margins, body, strict=True)
        ]
    return "\n".join(lines) + "\n"


def _text_table(section: Section) -> list[str]:
    if not section.header:
        return []
    names = [name.lstrip(">") for name in section.header]
    widths = [
        max(len(cell) for cell in column) for column in zip(names, *section.rows, strict=True)
    ]
    return [
        "  ".join(
            cell.rjust(size) if name.startswith(">") else cell.ljust(size)
            for cell, size, name in zip(cells, widths, section.header, strict=True)
        ).rstrip()
        for cells in (names, *section.rows)
    ]
