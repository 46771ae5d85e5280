"""Answers of studies, kept until something happens in the study."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from search.cli.answering import answer_of
from search.report.about import About, about_study
from search.rows import StudyRow, TrialRow
from search.store.measurements import Event
from search.store.repo import Store
from search.store.tables import DerivedStudy

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.side_by_side import SideBySide

KEPT = 8
MOST_LISTED = 200
"""Architectures in an answer that is sent; the whole list is a file."""
PASSING = ("report", "answer")
"""Events that change no answer: readings on the way, and answers themselves."""


@dataclass(frozen=True)
class Answered:
    """A study with its trials and its answer.

    Attributes:
        study: The study.
        rows: Its trials, with curves and sums by document.
        answer: The answer.
        about: What a report says beside it.
    """

    study: StudyRow
    rows: list[TrialRow]
    answer: Answer
    about: About


def in_brief(answer: Answer) -> Answer:
    """Return an answer whose size does not grow with the number of trials.

    Of the architectures around the front it holds those that no other beats, and the baselines.
    """
    points = [point for point in answer.pareto.points if point.is_best or point.roles]
    return replace(answer, pareto=replace(answer.pareto, points=tuple(points[:MOST_LISTED])))


def answer_document(answer: Answer) -> dict[str, Any]:
    """Return an answer in brief; `pareto.n_points` counts the points of the whole one."""
    document = in_brief(answer).to_dict()
    document["pareto"]["n_points"] = len(answer.pareto.points)
    return document


def comparison_document(sides: SideBySide) -> dict[str, Any]:
    """Return two answers in brief, with the first of the architectures that both trained."""
    first, second = sides.answers
    shared = sides.shared[:MOST_LISTED]
    brief = replace(sides, answers=(in_brief(first), in_brief(second)), shared=shared)
    return brief.to_dict() | {"n_shared": len(sides.shared)}


def newest_change(store: Store, study_id: int) -> int:
    """Return the id of the newest event that may change a study's answer; 0 where there is none.

    An answer also reads the studies that are derived from its own.
    """
    derived = select(DerivedStudy.study_id).where(DerivedStudy.base_id == study_id)
    with store.reading() as connection:
        ids = [study_id, *connection.execute(derived).scalars()]
        newest = (
            select(Event.id)
            .where(Event.study_id.in_(ids), Event.kind.not_in(PASSING))
            .order_by(Event.id.desc())
            .limit(1)
        )
        return connection.execute(newest).scalar() or 0


class Answers:
    """The answers of a store's studies.

    One is made at a time: an answer is arithmetic, so two at once would only take turns.

    Args:
        store: The store.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kept: OrderedDict[int, tuple[int, Answered]] = OrderedDict()
        self.lock = threading.Lock()

    def of(self, study: StudyRow) -> Answered:
        """Return a study's answer as its trials are now.

        Raises:
            InputError: Its spec cannot be built here, as when a mixer is not installed.
        """
        with self.lock:
            newest = newest_change(self.store, study.id)
            known = self.kept.get(study.id)
            if known is not None and known[0] == newest:
                self.kept.move_to_end(study.id)
                return known[1]
            rows = self.store.rows(study.name, documents=True)
            answer = answer_of(self.store, study, rows)
            about = about_study(self.store, study, rows, self.store.url)
            made = Answered(study, rows, answer, about)
            self.kept[study.id] = (newest, made)
            while len(self.kept) > KEPT:
                self.kept.popitem(last=False)
            return made
