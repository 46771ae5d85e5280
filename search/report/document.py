"""A whole report as data: the answer, then its chapters; a page and Markdown are set from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from search.report import reproduce, words
from search.report import study as study_part
from search.report.chapters import CHAPTERS
from search.report.paragraph import headline, rest

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.report.about import About
    from search.report.sections import Section


@dataclass(frozen=True)
class FilledChapter:
    """A chapter with what this answer has to say in it."""

    key: str
    title: str
    lead: str
    sections: tuple[Section, ...] = ()
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A report: title, the answer in one paragraph (headline and rest), what ran, chapters."""

    title: str
    headline: str
    rest: str
    study: Section
    chapters: tuple[FilledChapter, ...] = field(default=())


def document_of(answer: Answer, about: About) -> Document:
    """Sets the parts of an answer in order; chapters and parts without a word are left out."""
    filled = []
    for chapter in CHAPTERS:
        if not answer.leaders and chapter.key not in ("spent", "failures"):
            continue
        parts = tuple(found for part in chapter.parts if (found := part(answer, None)))
        if parts or (chapter.figures and not chapter.parts):
            filled.append(
                FilledChapter(chapter.key, chapter.title, chapter.lead, parts, chapter.figures)
            )
    again = tuple(part for part in reproduce.sections(answer, about) if part)
    filled.append(FilledChapter("reproduce", reproduce.TITLE, reproduce.LEAD, again))
    filled.append(FilledChapter("words", words.TITLE, words.LEAD, (words.section(),)))
    return Document(
        title=f"Answer of {about.study}",
        headline=headline(answer),
        rest=rest(answer),
        study=_study(answer, about),
        chapters=tuple(filled),
    )


def _study(answer: Answer, about: About) -> Section:
    """What ran, and what the letters of the codes mean."""
    section = study_part.section(answer, about.study)
    if not about.letters:
        return section
    letters = (f"{letter} = {' or '.join(mixers)}" for letter, mixers in about.letters.items())
    return replace(section, lines=(*section.lines, f"letters: {'; '.join(letters)}"))
