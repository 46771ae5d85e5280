"""One worker: claim, run, heartbeat, report, finish; no trial brings it down."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.engine.assignments import Assignment, Ended, Reused
from search.engine.claims import Claims
from search.engine.observer import RunObserver, TrialStart
from search.engine.stopping import StopFlag
from search.errors import SearchError, StoreAwayError
from search.files import Files
from search.messages import Message, Progress, Report, TrialFailure, TrialResult, Warned
from search.rows import Claim
from search.slots.runners import TrialRunner
from search.spec.budget import Budget
from search.store.retries import is_of_machine
from search.training.failure import failure_of
from search.workers.contract import WorkerStore
from search.workers.lease import Lease
from search.workers.patience import Patience
from search.workers.reports import ReportBuffer
from search.workers.spool import Delivery, Spool

if TYPE_CHECKING:
    from search.settings import Settings

OUT_OF_TIME = "time budget used up"


@dataclass
class Tally:
    """What a worker did."""

    started: int = 0
    ended: Ended | None = None

    @classmethod
    def of(cls, tallies: Sequence[Tally]) -> Tally:
        """Returns what several workers did together."""
        ends = [tally.ended for tally in tallies if tally.ended is not None]
        return cls(sum(tally.started for tally in tallies), ends[-1] if ends else None)


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
        files: Where checkpoints lie, and results wait while the store is away.
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
        files: Files,
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
        self.files = files
        self.spool = Spool(files.spool)
        self.patience = Patience(stop, observer.message)
        self.clock = clock
        self.tally = Tally()
        self.out_of_time = False
        self.unsent: tuple[Message, ...] = ()

    def work(self) -> Tally:
        """Runs trials until there is nothing to start or a stop was asked for.

        Raises:
            SearchError: The store cannot be used, or a queued trial cannot be built.
            KeyboardInterrupt: A second Ctrl-C; the trial in hand went back to the queue.
        """
        self.patience(lambda: self.spool.send_all(self.store))
        while self.stop.check() is None:
            step = self.patience(self.claims.next)
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
        start = start_of(assignment)
        self.unsent = ()
        try:
            with Lease(self.store, claim, self.settings.beat_s) as lease:
                self.observer.trial_started(start)
                outcome = self._attempt(assignment, start, lease)
                # Still under the lease: the store may have to be waited for.
                self._deliver(claim, outcome)
        except StoreAwayError:
            raise  # What came of the trial is on disk, or its lease runs out.
        except BaseException:
            # Nothing happens to a trial that has ended already.
            with suppress(StoreAwayError):
                self.store.release(claim, False, self.stop.reason or "the worker stopped")
            raise
        self._show(claim.trial_id)

    def _attempt(
        self, assignment: Assignment, start: TrialStart, lease: Lease
    ) -> TrialResult | TrialFailure:
        try:
            return self._train(assignment, start, lease)
        except SearchError:
            raise
        except Exception as error:
            return failure_of(error)

    def _train(
        self, assignment: Assignment, start: TrialStart, lease: Lease
    ) -> TrialResult | TrialFailure:
        deadline = self._deadline()
        reports = ReportBuffer(self.store, assignment.claim, self.clock)

        def on_message(message: Message) -> None:
            reports.add(message)
            if isinstance(message, Progress):
                self.observer.progress(start, message.step, message.steps)
            elif isinstance(message, Report) and message.split == "selection":
                self.observer.validation(start, message.step, message.metrics)
            elif isinstance(message, Warned):
                self.observer.message(f"trial {start.number}: {message.text}")

        def should_stop() -> str | None:
            reason = self.stop.check() or lease.reason
            if reason is not None:
                return reason
            self.out_of_time = self.clock() >= deadline
            return OUT_OF_TIME if self.out_of_time else None

        try:
            return self.runner.run(assignment, on_message=on_message, should_stop=should_stop)
        finally:
            reports.flush()
            self.unsent = tuple(reports.waiting)

    def _deadline(self) -> float:
        if self.budget.unit != "seconds":
            return float("inf")
        # Read before the clock: the other way round the trial would end early by what reading took.
        busy_s = self.patience(lambda: self.store.study(self.study_id)).busy_s
        return self.clock() + self.budget.amount - busy_s

    def _deliver(self, claim: Claim, outcome: TrialResult | TrialFailure) -> None:
        delivery = self._delivery(claim, outcome).model_copy(update={"reports": self.unsent})
        has_ended = self.spool.deliver(delivery, self.store, self.patience)
        # A pruned trial may be promoted; one that another worker took over is in its hands.
        if has_ended and not (delivery.result and delivery.result.outcome == "pruned"):
            self.files.forget_checkpoints(claim.trial_id)

    def _delivery(self, claim: Claim, outcome: TrialResult | TrialFailure) -> Delivery:
        if isinstance(outcome, TrialFailure):
            if self.stop.reason is not None and is_of_machine(outcome.cause):
                return Delivery(claim=claim, reason=self.stop.reason)
            return Delivery(claim=claim, failure=outcome)
        is_promoted = claim.promoted_from is not None
        if outcome.outcome == "stopped" and (outcome.reason != OUT_OF_TIME or is_promoted):
            # Its place in the budget is kept: the next run takes it up again.
            return Delivery(claim=claim, reason=outcome.reason)
        return Delivery(claim=claim, result=outcome)

    def _show(self, trial_id: int) -> None:
        rows = self.patience(lambda: self.store.rows(self.study_id, curves=False))
        row = next((row for row in rows if row.id == trial_id), None)
        if row is not None:  # The study may have been deleted meanwhile.
            self.observer.trial_finished(row)


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
        promoted_from=claim.promoted_from,
    )
