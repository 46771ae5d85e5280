"""What a run tells whoever watches it: the command line, a notebook, a test."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from mixers.spec import EncoderSpec
from search.rows import Phase, TrialRow
from search.spec.budget import Budget


@dataclass(frozen=True, kw_only=True)
class StudyStart:
    """A run at its beginning.

    Attributes:
        name: Name of the study.
        study_id: Its key in the store.
        store: Where the results lie, without password.
        budget: What this run may spend, earlier runs of the study included.
        spent: What the study has spent, in the budget's unit.
        n_trials: Trials that were there before.
        space_size: Number of architectures of the space.
        objective: Metric that ranks.
        unit: Its unit.
        direction: `minimize` or `maximize`.
        steps: Training steps of a trial; 0 where the objective does not say.
        data: Facts about the data for people.
    """

    name: str
    study_id: int
    store: str
    budget: Budget
    spent: float
    n_trials: int
    space_size: int
    objective: str
    unit: str
    direction: str
    steps: int
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TrialStart:
    """A trial that begins, or begins again (attempt > 1): from a rung, if it was promoted."""

    trial_id: int
    number: int
    phase: Phase
    role: str | None
    spec: EncoderSpec
    seed: int
    seed_index: int
    attempt: int
    promoted_from: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        study: Name of the study.
        study_id: Its key in the store.
        reason: ``budget``, ``space used up``, ``interrupted``, ``stopped`` or ``failed``.
        message: One line for people.
        exit_code: What a command should end with.
        started: Trials that this run started.
        completed: Trials of the study that ended with a result.
        failed: Trials of the study that failed or diverged.
        n_trials: Trials of the study.
    """

    study: str
    study_id: int
    reason: str
    message: str
    exit_code: int
    started: int
    completed: int
    failed: int
    n_trials: int


class RunObserver:
    """Watches a run; every method may be overridden and does nothing by default.

    The methods are called one at a time, though from several threads where a run has several
    workers; then several trials are in hand at once.
    """

    def study_started(self, start: StudyStart) -> None:
        """The study is open, the data ready; trials follow."""

    def trial_started(self, trial: TrialStart) -> None:
        """A trial begins."""

    def progress(self, trial: TrialStart, step: int, steps: int) -> None:
        """A trial in hand stands after so many of its steps."""

    def validation(self, trial: TrialStart, step: int, metrics: Mapping[str, float]) -> None:
        """A trial in hand was read on the selection split."""

    def trial_finished(self, row: TrialRow) -> None:
        """A trial ended, or went back to the queue (state `queued`)."""

    def message(self, text: str) -> None:
        """Something that the user should know."""

    def finished(self, outcome: RunOutcome) -> None:
        """The run is over."""


class OneAtATime(RunObserver):
    """Passes on what several workers tell, one call at a time."""

    def __init__(self, watched: RunObserver) -> None:
        self.watched = watched
        self.lock = threading.Lock()

    def study_started(self, start: StudyStart) -> None:
        """Pass it on."""
        with self.lock:
            self.watched.study_started(start)

    def trial_started(self, trial: TrialStart) -> None:
        """Pass it on."""
        with self.lock:
            self.watched.trial_started(trial)

    def progress(self, trial: TrialStart, step: int, steps: int) -> None:
        """Pass it on."""
        with self.lock:
            self.watched.progress(trial, step, steps)

    def validation(self, trial: TrialStart, step: int, metrics: Mapping[str, float]) -> None:
        """Pass it on."""
        with self.lock:
            self.watched.validation(trial, step, metrics)

    def trial_finished(self, row: TrialRow) -> None:
        """Pass it on."""
        with self.lock:
            self.watched.trial_finished(row)

    def message(self, text: str) -> None:
        """Pass it on."""
        with self.lock:
            self.watched.message(text)

    def finished(self, outcome: RunOutcome) -> None:
        """Pass it on."""
        with self.lock:
            self.watched.finished(outcome)
