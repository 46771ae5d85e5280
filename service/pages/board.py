"""Answers for pages: made beside the request, so that a page of a large study never waits long."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLongError
from dataclasses import dataclass

from fastapi import Request

from search.errors import SearchError
from search.figures.shown import PageFigure
from search.report.document import Document, document_of
from search.rows import StudyRow
from service.answers import Answered, Answers
from service.problems import one_line

PATIENCE_S = 0.12
"""How long a page waits for an answer before it shows the last one, or none yet."""
KEPT = 8


@dataclass(frozen=True)
class Shown:
    """An answer, set for a page.

    Attributes:
        answered: The study with its rows and answer.
        document: The parts of the report.
        figures: Those that have something to show, by name.
    """

    answered: Answered
    document: Document
    figures: dict[str, PageFigure]


@dataclass(frozen=True)
class Reading:
    """What a page may say of a study's answer now.

    Attributes:
        shown: The answer; None while the first one is made, or where none can be.
        is_current: Whether nothing happened since it was made.
        problem: Why there is none.
    """

    shown: Shown | None
    is_current: bool
    problem: str = ""


class Board:
    """The answers that pages show; one is made at a time.

    Args:
        answers: Makes and keeps them.
    """

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="answer")
        self.lock = threading.Lock()
        self.kept: OrderedDict[int, Shown] = OrderedDict()
        self.making: dict[int, Future[Shown]] = {}

    def read(self, study: StudyRow, patience_s: float = PATIENCE_S) -> Reading:
        """Returns the newest answer there is after at most some seconds."""
        with self.lock:
            making = self.making.get(study.id)
            if making is None or making.done():
                making = self.pool.submit(self.make, study)
                self.making[study.id] = making
        try:
            shown = making.result(patience_s)
        except TooLongError:
            return Reading(self.kept.get(study.id), is_current=False)
        except SearchError as error:
            return Reading(None, is_current=True, problem=one_line(error))
        return Reading(shown, is_current=True)

    def make(self, study: StudyRow) -> Shown:
        """Makes an answer with its figures, or returns the one there is."""
        answered = self.answers.of(study)
        known = self.kept.get(study.id)
        if known is not None and known.answered is answered:
            return known
        made = shown_of(answered)
        with self.lock:
            self.kept[study.id] = made
            self.kept.move_to_end(study.id)
            while len(self.kept) > KEPT:
                self.kept.popitem(last=False)
        return made

    def close(self) -> None:
        """Begins no further answer."""
        self.pool.shutdown(wait=False, cancel_futures=True)


def shown_of(answered: Answered) -> Shown:
    """Sets an answer for a page."""
    from search.figures.plots import FIGURES
    from search.figures.shown import page_figure

    document = document_of(answered.answer, answered.about)
    names = [name for chapter in document.chapters for name in chapter.figures]
    drawn = {name: FIGURES[name](answered.rows, answered.answer) for name in names}
    figures = {name: page_figure(name, figure) for name, figure in drawn.items() if figure.data}
    return Shown(answered, document, figures)


def board_of(request: Request) -> Board:
    """The application's board."""
    board: Board = request.app.state.board
    return board
