"""Mechanisms that do not work, each broken by name in a worker process of a test.

`BREAKS` maps a name to what breaks it, from the outside: the product has no switch for it. A
scenario that must show the fault runs with one of them and is held to the same promises.
"""

import contextlib
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine, select, update
from told_time import tell_time

from search.engine import own_objective, runner
from search.errors import StoreAwayError
from search.store import engine, leases, reaping, reserving, results
from search.store.repo import Store
from search.store.tables import Attempt, Trial
from search.workers import spool
from search.workers.lease import Lease
from search.workers.worker import Worker

MEETING_S = 20.0


def meet(name: str) -> None:
    """Wait until two processes have come here, so that both are between two steps that are one."""
    flag = Path(os.environ["FAULT_FLAG"])
    flag.with_name(f"{name}-{os.getpid()}").touch()
    end = time.monotonic() + MEETING_S
    while len(list(flag.parent.glob(f"{name}-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.005)


def lease_never_renewed() -> None:
    """The heartbeat beats no more."""
    Lease._beat = lambda self: None


def fencing_ignored() -> None:
    """An attempt that was taken over ends its trial all the same."""

    def end_attempt(connection, claim, ended_at, outcome, **fields):
        results.forget_result(connection, claim.trial_id)
        connection.execute(
            update(Attempt)
            .where(Attempt.trial_id == claim.trial_id, Attempt.number == claim.token)
            .values(ended_at=ended_at, outcome=outcome, **fields)
        )
        leases.rest_clock(connection, claim.study_id, ended_at)
        return True

    results.end_attempt = end_attempt
    Lease._beat = lambda self: None  # so that it does not hear of the takeover


def spool_dropped() -> None:
    """What came of a trial is forgotten where the store does not take it at once."""

    def deliver(self, delivery, store, patience):
        try:
            return delivery.send(store)
        except StoreAwayError:
            Path(os.environ["FAULT_FLAG"]).with_name("dropped").touch()
        return False

    spool.Spool.deliver = deliver


def reaping_off() -> None:
    """Nobody takes back what a dead worker left."""
    for module in (reserving, reaping):
        module.reap = lambda connection, study_id, now: 0


def budget_outside() -> None:
    """The budget is checked first, and a number taken afterwards."""
    reserve = Store.reserve

    def two_steps(self, study_id, worker_id, choose, resume=None, promote=None):
        phase = choose(self.counts(study_id))
        meet("budget")
        return reserve(self, study_id, worker_id, lambda counts: phase, resume, promote)

    Store.reserve = two_steps


def queue_in_two_steps() -> None:
    """A queued trial is read first and marked as taken afterwards."""
    reserve = Store.reserve

    def two_steps(self, study_id, worker_id, choose, resume=None, promote=None):
        wanted = select(Trial.id).where(Trial.study_id == study_id, Trial.state == "queued")
        with self.reading() as connection:
            trial_id = connection.execute(wanted.order_by(Trial.number)).scalars().first()
        if trial_id is None:
            return reserve(self, study_id, worker_id, choose, resume, promote)
        meet("queue")
        with self.writing(study_id) as connection:
            trial = connection.execute(select(Trial).where(Trial.id == trial_id)).one()
            now = engine.database_time(connection)
            return reserving.next_attempt(connection, trial, worker_id, now, self.lease_s)

    Store.reserve = two_steps


def lock_is_an_error() -> None:
    """A locked file is an error like any other, at once."""
    engine.BUSY_TIMEOUT_S = 0.0
    engine.LOCKED = "never said"


def clock_of_the_worker() -> None:
    """Leases run by the clock of whoever has them."""

    tell_time(Engine, lambda: datetime.fromtimestamp(time.time(), UTC))


def signals_unheard() -> None:
    """A signal ends the process where it stands."""

    @contextlib.contextmanager
    def nothing(flag, announce):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        yield

    runner.stop_on_signals = nothing


def errors_come_out() -> None:
    """What a trial raises ends its worker."""

    def run(self, assignment, *, on_message, should_stop):
        self.objective(assignment.spec, assignment.seed, lambda step, value: None)

    own_objective.ObjectiveRunner.run = run
    Worker._attempt = Worker._train


def full_disk_unexplained() -> None:
    """The errors of the database come out as they are."""

    @contextlib.contextmanager
    def untranslated(address):
        yield

    engine.translated = untranslated


def files_left_open() -> None:
    """Every trial leaves files and memory behind."""
    kept = []
    finish = Store.finish

    def leaking(self, claim, result):
        kept.append((open("/dev/null", "rb"), bytearray(1 << 20)))  # noqa: SIM115
        return finish(self, claim, result)

    Store.finish = leaking


BREAKS = {
    function.__name__: function
    for function in (
        lease_never_renewed,
        fencing_ignored,
        spool_dropped,
        reaping_off,
        budget_outside,
        queue_in_two_steps,
        lock_is_an_error,
        clock_of_the_worker,
        signals_unheard,
        errors_come_out,
        full_disk_unexplained,
        files_left_open,
    )
}
