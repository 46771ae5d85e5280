"""One worker: claim, run, heartbeat, report, finish; no trial brings it down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.assignments import Assignment, Ended, Reused
from search.budget import Budget
from search.claims import Claims
from search.errors import SearchError, StoreError
from search.failure import failure_of
from search.messages import Message, Progress, TrialFailure, TrialResult
from search.observer import RunObserver, TrialStart
from search.rows import Claim
from search.runners import TrialRunner
from search.stopping import StopFlag
from search.workers.contract import WorkerStore
from search.workers.reports import ReportBuffer

if TYPE_CHECKING:
    from search.settings import Settings

OUT_OF_TIME = "time budget used up"
LOST = "another worker took the trial over"
RETRIED_CAUSES = frozenset({"hung", "lost"})
"""Causes that say more about the machine than about the trial; others are final at once."""


@dataclass
class Tally:
    """What a worker did."""

    started: int = 0
    ended: Ended | None = None


class Worker:
    """Runs the trials of one study until there is none left or it is told to stop.

    Args:
        store: The store.
        study_id: The study.
        claims: Gives the next trial.
        runner: Runs it.
        budget: A time budget also ends the trial in hand.
        observer: Watches.
        stop: Asked at step boundaries and between trials.
        settings: Beats and attempts.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        store: WorkerStore,
        study_id: int,
        claims: Claims,
        runner: TrialRunner,
        *,
        budget: Budget,
        observer: RunObserver,
        stop: StopFlag,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.study_id = study_id
        self.claims = claims
        self.runner = runner
        self.budget = budget
        self.observer = observer
        self.stop = stop
        self.settings = settings
        self.clock = clock
        self.tally = Tally()
        self.out_of_time = False

    def work(self) -> Tally:
        """Runs trials until there is nothing to start or a stop was asked for.

        Raises:
            SearchError: The store cannot be used, or a queued trial cannot be built.
            KeyboardInterrupt: A second Ctrl-C; the trial in hand went back to the queue.
        """
        while self.stop.reason is None:
            step = self.claims.next()
            if isinstance(step, Ended):
                self.tally.ended = step
                break
            if isinstance(step, Reused):
                self.tally.started += 1
                self._show(step.trial_id)
                continue
            self._run(step)
            if self.out_of_time:
                break
        return self.tally

    def _run(self, assignment: Assignment) -> None:
        claim = assignment.claim
        if claim.spec is None:
            self.tally.started += 1
        try:
            with self._lease(claim) as lost:
                self.observer.trial_started(start_of(assignment))
                outcome = self._attempt(assignment, lost)
            self._settle(claim, outcome)
        except BaseException:
            # Nothing happens to a trial that has ended already.
            self.store.release(claim, False, self.stop.reason or "the worker stopped")
            raise
        self._show(claim.trial_id)

    def _attempt(self, assignment: Assignment, lost: threading.Event) -> TrialResult | TrialFailure:
        try:
            return self._train(assignment, lost)
        except SearchError:
            raise
        except Exception as error:
            return failure_of(error)

    def _train(self, assignment: Assignment, lost: threading.Event) -> TrialResult | TrialFailure:
        deadline = self._deadline()
        reports = ReportBuffer(self.store, assignment.claim, self.clock)

        def on_message(message: Message) -> None:
            reports.add(message)
            if isinstance(message, Progress):
                self.observer.progress(message.step, message.steps)
            elif message.split == "selection":
                self.observer.validation(message.step, message.metrics)

        def should_stop() -> str | None:
            if lost.is_set():
                return LOST
            if self.stop.reason is not None:
                return self.stop.reason
            self.out_of_time = self.clock() >= deadline
            return OUT_OF_TIME if self.out_of_time else None

        try:
            return self.runner.run(assignment, on_message=on_message, should_stop=should_stop)
        finally:
            reports.flush()

    def _deadline(self) -> float:
        if self.budget.unit != "seconds":
            return float("inf")
        # Read before the clock: the other way round the trial would end early by what reading took.
        busy_s = self.store.study(self.study_id).busy_s
        return self.clock() + self.budget.amount - busy_s

    def _settle(self, claim: Claim, outcome: TrialResult | TrialFailure) -> None:
        if isinstance(outcome, TrialFailure):
            if self.stop.reason is not None and outcome.cause in RETRIED_CAUSES:
                self.store.release(claim, False, self.stop.reason)
            elif outcome.cause in RETRIED_CAUSES and claim.token < self.settings.max_attempts:
                self.store.release(claim, False, f"{outcome.cause}: {outcome.message}")
            else:
                self.store.fail(claim, outcome)
        elif outcome.outcome == "stopped" and outcome.reason != OUT_OF_TIME:
            # Its place in the budget is kept: the next run takes it up again.
            self.store.release(claim, False, outcome.reason)
        else:
            self.store.finish(claim, outcome)

    def _show(self, trial_id: int) -> None:
        row = next(r for r in self.store.rows(self.study_id, curves=False) if r.id == trial_id)
        self.observer.trial_finished(row)

    @contextmanager
    def _lease(self, claim: Claim) -> Iterator[threading.Event]:
        """Keeps the lease alive from another thread; the event says that it was lost."""
        lost, done = threading.Event(), threading.Event()
        every = min(self.settings.beat_s, claim.lease_s / 4)

        def beat() -> None:
            while not done.wait(every):
                try:
                    alive = self.store.heartbeat(claim)
                except StoreError:
                    continue  # The database may come back before the lease ends.
                if not alive:
                    lost.set()
                    return

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield lost
        finally:
            done.set()
            thread.join()


def start_of(assignment: Assignment) -> TrialStart:
    """Describes a trial that begins."""
    claim = assignment.claim
    return TrialStart(
        trial_id=claim.trial_id,
        number=claim.number,
        phase=claim.phase,
        role=assignment.role,
        spec=assignment.spec,
        seed=assignment.seed,
        seed_index=assignment.seed_index,
        attempt=claim.token,
    )
