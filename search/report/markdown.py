"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from search.report.document import document_of

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.report.about import About
    from search.report.sections import Section

SPECIAL = "\\`*_|<&#"
LANGUAGES = {"study.yaml": "yaml", "Commands": "sh"}


def render_markdown(answer: Answer, about: About) -> str:
    """The answer as Markdown, with all the tables.

    Args:
        answer: the answer.
        about: which study it is of.
    """
    document = document_of(answer, about)
    blocks = [
        f"# {escaped(document.title)}",
        f"**{escaped(document.headline)}** {escaped(document.rest)}".strip(),
    ]
    blocks += _section(document.study)
    for chapter in document.chapters:
        blocks += [f"## {escaped(chapter.title)}", escaped(chapter.lead)]
        for section in chapter.sections:
            if len(chapter.sections) > 1:
                blocks.append(f"### {escaped(section.title)}")
            if section.about:
                blocks.append(escaped(section.about))
            blocks += _section(section)
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    for character in SPECIAL:
        text = text.replace(character, f"\\{character}")
    return " ".join(text.replace("](", "]\\(").split())


def _section(section: Section) -> Iterator[str]:
    if section.header:
        head = [name.lstrip(">") for name in section.header]
        rule = ["---:" if name.startswith(">") else "---" for name in section.header]
        yield "\n".join([_row(head), _joined(rule), *map(_row, section.rows)])
    if section.lines:
        bullet = "- " if len(section.lines) > 1 else ""
        yield "\n".join(f"{bullet}{escaped(line)}" for line in section.lines)
    if section.code:
        fence = "```"
        while fence in section.code:
            fence += "`"
        yield f"{fence}{LANGUAGES.get(section.title, '')}\n{section.code}\n{fence}"


def _row(cells: Sequence[str]) -> str:
    return _joined([escaped(cell) for cell in cells])


def _joined(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
