"""Answers of studies, kept until something happens in the study."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from search.answers.answer import Answer
from search.cli.answering import answer_of
from search.report.about import About, about_study
from search.rows import StudyRow, TrialRow
from search.store.repo import Store
from service.studies import last_event

KEPT = 8


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
            newest = last_event(self.store, study.id)
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
