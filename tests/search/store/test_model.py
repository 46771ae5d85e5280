"""Claims, leases and ends of trials in any order, against a model that is a few plain lists.

The clock of both databases is replaced by the model's, wherever a statement asks for it, so leases
run out when the model says so. A store that its workers reach through a service is held to the same
model.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import store_factory
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from served import server_of
from sqlalchemy import bindparam, select, update
from sqlalchemy.exc import SQLAlchemyError
from told_time import tell_time

import service.app
from search.engine.terms import Terms
from search.phases.quotas import Agenda
from search.phases.rungs import Promotions
from search.remote.working import RemoteWorkerStore
from search.rows import Promotion
from search.spec.budget import Budget
from search.store import leases, reaping, reserving, results
from search.store.engine import DatabaseTime
from search.store.reading import trial_rows
from search.store.retries import MOST_ATTEMPTS
from search.store.tables import Attempt, Trial

BUDGET = 6
STEPS = 300
ARCHITECTURES = ("attention*2", "sepconv*2", "sepconv, attention")
SPECS = {notation: store_factory.encoder_spec(notation) for notation in ARCHITECTURES}
START = datetime(2030, 1, 1, tzinfo=UTC)
FINAL = {"completed", "diverged", "failed", "pruned"}
TERMS = Terms(Budget("trials", BUDGET), Agenda(0, frozenset({"search"})), Promotions())
# What a worker says over HTTP and the model has no use for.
UNSAID = {
    **{"role": None, "params": {}, "attrs": {}, "study_attrs": {}, "recipe": {}, "flops": 0},
    **{"most_flops": None, "splits": ("selection",), "until": None},
}


@dataclass
class ModelAttempt:
    """One attempt: since when, until when its lease goes, and how it ended."""

    started: datetime
    expires: datetime
    ended: datetime | None = None
    outcome: str | None = None
    cause: str | None = None
    late: bool = False


@dataclass
class ModelTrial:
    """One trial; `architecture` is None while it is a reservation."""

    number: int
    state: str = "proposed"
    architecture: tuple[str, int] | None = None
    attempts: list[ModelAttempt] = field(default_factory=list)


class StoreMachine(RuleBasedStateMachine):
    """What a store must do."""

    claims = Bundle("claims")
    store = None
    time = START
    serial = 0

    @initialize()
    def begin(self):
        StoreMachine.serial += 1
        self.now = START
        self.tick(0)
        name = f"study-{StoreMachine.serial}"
        self.key = f"key-{StoreMachine.serial}"  # so that no example takes over another's results
        self.study = self.store.ensure_study(
            name, store_factory.study_spec(), store_factory.PLUGINS
        ).id
        self.store.ask_budget(self.study, str(BUDGET))  # by which a service judges
        self.worker = self.store.register_worker()
        self.trials, self.resting = {}, False
        self.returned = []  # when reservations that are gone were held

    def tick(self, seconds):
        self.now += timedelta(seconds=seconds)
        StoreMachine.time = self.now

    # The model's own parts

    def live(self, claim):
        trial = self.trials.get(claim.trial_id)
        attempt = trial.attempts[claim.token - 1] if trial else None
        return attempt if attempt and attempt.ended is None else None

    def end(self, claim, outcome, cause=None, at=None):
        attempt = self.live(claim)
        attempt.ended, attempt.outcome, attempt.cause = at or self.now, outcome, cause

    def give_up(self, trial_id, at):
        trial = self.trials.pop(trial_id)
        self.returned.append((trial.attempts[-1].started, at))

    def settle(self, trial, cause):
        times = sum(attempt.cause == cause for attempt in trial.attempts)
        trial.state = "queued" if times < MOST_ATTEMPTS[cause] else "failed"

    def take_back(self):
        taken = 0
        for trial_id, trial in list(self.trials.items()):
            attempt = trial.attempts[-1]
            if attempt.ended is not None or attempt.expires >= self.now:
                continue
            taken += 1
            if trial.state == "proposed":
                self.give_up(trial_id, attempt.expires)
                continue
            attempt.ended, attempt.outcome, attempt.cause = attempt.expires, "lost", "lost"
            self.settle(trial, "lost")
        return taken

    # What happens

    @rule(target=claims)
    def reserve(self):
        claim = self.store.reserve(
            self.study, self.worker, lambda counts: "search" if counts.started < BUDGET else None
        )
        if self.resting:
            assert claim is None
            return multiple()
        self.take_back()
        queued = [key for key, trial in self.trials.items() if trial.state == "queued"]
        if queued:
            trial_id = min(queued, key=lambda key: self.trials[key].number)
            trial = self.trials[trial_id]
            assert (claim.trial_id, claim.number) == (trial_id, trial.number)
            assert claim.spec is not None
            trial.state = "running"
        elif len(self.trials) >= BUDGET:
            assert claim is None
            return multiple()
        else:
            number = max((trial.number for trial in self.trials.values()), default=-1) + 1
            assert claim.trial_id not in self.trials
            assert (claim.number, claim.spec) == (number, None)
            trial = self.trials[claim.trial_id] = ModelTrial(number)
        return self.attempted(claim, trial)

    def attempted(self, claim, trial):
        expires = self.now + timedelta(seconds=self.store.lease_s)
        trial.attempts.append(ModelAttempt(self.now, expires))
        assert claim.token == len(trial.attempts)
        return claim

    @precondition(lambda self: any(trial.state == "pruned" for trial in self.trials.values()))
    @rule(target=claims, is_early=st.booleans())
    def promote(self, is_early):
        pruned = [key for key, trial in self.trials.items() if trial.state == "pruned"]
        wanted = Promotion(trial_id=pruned[0], steps=STEPS - is_early, until=None, until_steps=900)
        claim = self.store.reserve(
            self.study,
            self.worker,
            lambda counts: None,
            lambda counts: False,
            lambda counts: wanted,
        )
        if not self.resting:
            self.take_back()
        if self.resting or is_early:
            assert claim is None
            return multiple()
        trial = self.trials[pruned[0]]
        assert (claim.trial_id, claim.promoted_from) == (pruned[0], STEPS)
        trial.state = "running"
        return self.attempted(claim, trial)

    @rule(
        claim=claims,
        architecture=st.tuples(st.sampled_from(ARCHITECTURES), st.integers(0, 1)),
    )
    def commit(self, claim, architecture):
        trial = self.trials.get(claim.trial_id)
        if claim.spec is not None or (trial and trial.state != "proposed"):
            return
        notation, seed_index = architecture
        outcome = self.store.commit(
            claim, SPECS[notation], seed=seed_index, seed_index=seed_index, training_key=self.key
        )
        if self.live(claim) is None:
            assert outcome == "lost"
        elif any(other.architecture == architecture for other in self.trials.values()):
            assert outcome == "duplicate"
        else:
            assert outcome == "running"
            trial.state, trial.architecture = "running", architecture

    @rule(claim=claims)
    def heartbeat(self, claim):
        state = self.store.heartbeat(claim)
        attempt = self.live(claim)
        assert (state is None) == (attempt is None)
        if attempt is not None:
            attempt.expires = self.now + timedelta(seconds=self.store.lease_s)
            assert state == ("paused" if self.resting else "running")

    @rule(claim=claims, outcome=st.sampled_from(["completed", "diverged", "pruned"]))
    def finish(self, claim, outcome):
        trial = self.trials.get(claim.trial_id)
        if trial is None or trial.state == "proposed":
            return
        done = self.store.finish(claim, store_factory.result(outcome=outcome, steps=STEPS))
        attempt = trial.attempts[claim.token - 1]
        if attempt.ended is None:
            assert done
            self.end(claim, outcome)
            trial.state = outcome
        elif attempt.outcome in FINAL - {"failed"}:
            assert done
        else:
            assert not done
            attempt.late = True

    @rule(claim=claims, outcome=st.sampled_from(["completed", "diverged", "pruned"]))
    def finish_too_late(self, claim, outcome):
        self.tick(95)
        self.reap()
        self.finish(claim, outcome)

    @rule(claim=claims, cause=st.sampled_from(sorted(MOST_ATTEMPTS)))
    def fail(self, claim, cause):
        trial = self.trials.get(claim.trial_id)
        if trial is None or trial.state == "proposed":
            return
        outcome = self.store.fail(claim, store_factory.failure(cause=cause))
        if self.live(claim) is not None:
            self.end(claim, "failed", cause)
            self.settle(trial, cause)
            assert outcome == trial.state
            return
        attempt = trial.attempts[claim.token - 1]
        if (attempt.outcome, attempt.cause) == ("failed", cause):  # told twice
            assert outcome == ("failed" if trial.state == "failed" else "queued")
        else:
            assert outcome == "lost"

    @rule(claim=consumes(claims), returned=st.booleans())
    def release(self, claim, returned):
        self.store.release(claim, returned, "given back")
        if self.live(claim) is None:
            return
        trial = self.trials[claim.trial_id]
        if trial.state == "proposed":
            self.give_up(claim.trial_id, self.now)
            return
        self.end(claim, "preempted")
        trial.state = "queued"

    @rule(seconds=st.sampled_from([1, 40, 95]))
    def wait(self, seconds):
        self.tick(seconds)

    @rule()
    def reap(self):
        # It is for all studies of the store; those of earlier examples may have some as well.
        assert self.store.reap() >= self.take_back()

    @rule()
    def pause_or_resume(self):
        self.resting = not self.resting
        self.store.change_state(self.study, "paused" if self.resting else "running")
        self.resting = self.store.study(self.study).state == "paused"

    @precondition(lambda self: any(trial.state == "failed" for trial in self.trials.values()))
    @rule()
    def retry(self):
        self.store.retry(self.study)
        for trial in self.trials.values():
            trial.state = "queued" if trial.state == "failed" else trial.state

    # What must hold

    @invariant()
    def rows_agree(self):
        rows = self.store.rows(self.study, curves=False)
        expected = sorted((trial.number, trial.state) for trial in self.trials.values())
        assert [(row.number, row.state) for row in rows] == expected
        with self.store.reading() as connection:
            assert rows == trial_rows(connection, self.study, curves=False)
            attempts = connection.execute(
                select(Attempt)
                .where(Attempt.study_id == self.study)
                .order_by(Attempt.trial_id, Attempt.number)
            ).all()
        assert [
            (row.trial_id, row.ended_at, row.outcome, row.cause, row.result is not None)
            for row in attempts
        ] == [
            (trial_id, attempt.ended, attempt.outcome, attempt.cause, attempt.late)
            for trial_id, trial in sorted(self.trials.items())
            for attempt in trial.attempts
        ]

    @invariant()
    def time_agrees(self):
        attempts = [a for trial in self.trials.values() for a in trial.attempts]
        held = [(a.started, a.ended or min(a.expires, self.now)) for a in attempts]
        busy_s = self.store.study(self.study).busy_s
        assert seconds_of(held) - 1e-3 <= busy_s <= seconds_of(held + self.returned) + 1e-3


class Served:
    """A store whose workers reach a service before it; all else is done beside it."""

    def __init__(self, store, remote):
        self.store, self.remote = store, remote
        for name in ("heartbeat", "finish", "fail", "release", "register_worker"):
            setattr(self, name, getattr(remote, name))

    def __getattr__(self, name):
        return getattr(self.store, name)

    def reserve(self, study, worker, choose, resume=None, promote=None):
        if promote is None:
            return self.remote.claim(study, worker, TERMS).claim
        claim = self.store.reserve(study, worker, choose, resume, promote)
        if claim is not None:
            self.remote.held.add((claim.trial_id, claim.token))
        return claim

    def commit(self, claim, spec, **given):
        return self.remote.commit(claim, spec, **UNSAID, **given)


def seconds_of(intervals):
    """The length of a union of intervals."""
    total, until = 0.0, START
    for begin, end in sorted(intervals):
        total += max(0.0, (end - max(begin, until)).total_seconds())
        until = max(until, end)
    return total


def run(store, examples, phases=tuple(Phase)):
    StoreMachine.store = store
    tell_time(store.engine, lambda: StoreMachine.time)
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            database=None,
            derandomize=True,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test__store__any_order_of_calls__does_what_the_model_says(store):
    run(store, 8 if store.address.is_sqlite else 3)


@pytest.fixture
def served(store, ready_url, monkeypatch):
    monkeypatch.setattr(service.app, "REAPS_PER_LEASE", 1e-3)  # the model says when
    with server_of(ready_url) as (base, app), RemoteWorkerStore(base) as remote:
        tell_time(app.state.store.engine, lambda: StoreMachine.time)
        yield Served(store, remote)


def test__store_behind_a_service__any_order_of_calls__does_what_the_model_says(served):
    run(served, 8 if served.address.is_sqlite else 3)


@pytest.mark.slow
def test__store_behind_a_service__any_order_of_calls__does_what_the_model_says_at_length(served):
    run(served, 100 if served.address.is_sqlite else 30)


@pytest.mark.slow
def test__store__any_order_of_calls__does_what_the_model_says_at_length(store):
    run(store, 300 if store.address.is_sqlite else 60)


def token_unchecked(patch):
    """A claim that was taken over passes for the one that took over."""
    stale = (Attempt.trial_id == bindparam("trial"), Attempt.number >= bindparam("token"))
    live = update(Attempt).where(*stale, Attempt.ended_at.is_(None))
    patch.setattr(leases, "UPDATE_LIVE", live.returning(DatabaseTime()))


def ended_twice(patch):
    """An attempt that has ended ends its trial once more."""

    def end_attempt(connection, claim, ended_at, outcome, **fields):
        results.forget_result(connection, claim.trial_id)
        here = Attempt.trial_id == claim.trial_id, Attempt.number == claim.token
        changed = fields | {"ended_at": ended_at, "outcome": outcome}
        connection.execute(update(Attempt).where(*here).values(**changed))
        leases.rest_clock(connection, claim.study_id, ended_at)
        return True

    patch.setattr(results, "end_attempt", end_attempt)


def one_too_many(patch):
    """The budget is counted without the trial that comes."""
    count = reserving.count

    def less(*arguments):
        counts = count(*arguments)
        return replace(counts, started=counts.started - 1)

    patch.setattr(reserving, "count", less)


def reservation_not_given_back(patch):
    """A reservation whose lease ran out keeps its place."""
    reap_one = reaping.reap_one

    def keeping(connection, study_id, lost, now):
        if lost.row.state != "proposed":
            reap_one(connection, study_id, lost, now)

    patch.setattr(reaping, "reap_one", keeping)


def taken_but_still_queued(patch):
    """A queued trial that was taken can be taken again."""
    set_state = reserving.set_state

    def forgetful(connection, trial_id, state, reason, **fields):
        set_state(connection, trial_id, "queued", reason, **fields)

    patch.setattr(reserving, "set_state", forgetful)


def beats_renew_nothing(patch):
    """A sign of life is heard and changes nothing."""

    def heartbeat(connection, claim):
        if not leases.holds_lease(connection, claim):
            return None
        return connection.execute(leases.SELECT_STATE, {"study": claim.study_id}).scalar_one()

    patch.setattr(leases, "heartbeat", heartbeat)


def leases_never_end(patch):
    """Nothing is taken back."""
    patch.setattr(reaping, "lost_attempts", lambda rows, now: iter(()))


def one_attempt_more(patch):
    """A trial is tried once more than its cause allows."""
    patch.setattr(leases, "may_retry", lambda cause, times: times <= MOST_ATTEMPTS[cause])


def late_result_dropped(patch):
    """What comes too late is kept nowhere."""
    patch.setattr(results, "keep_late", lambda connection, claim, result: False)


def released_reservation_queued(patch):
    """A reservation that is given back waits to be trained."""

    def release(connection, claim, returned, reason):
        now = StoreMachine.time
        if leases.end_attempt(connection, claim, now, "preempted", message=reason):
            leases.set_state(connection, claim.trial_id, "queued", reason)

    patch.setattr(leases, "release", release)


def clock_never_stops(patch):
    """The time budget is spent while nobody works."""
    for module in (leases, reaping):
        patch.setattr(module, "rest_clock", lambda connection, study_id, at: None)


def promoted_from_anywhere(patch):
    """A trial is promoted from another step than the one that was judged."""
    chosen = Trial.id == bindparam("trial"), Trial.steps >= bindparam("steps")
    patch.setattr(reserving, "PRUNED", select(Trial).where(*chosen, Trial.state == "pruned"))


def rest_unheeded(patch):
    """A study that rests hands out trials."""
    standing = reserving.standing

    def awake(connection, study_id):
        known = standing(connection, study_id)._asdict()
        return SimpleNamespace(**known | {"state": "running"})

    patch.setattr(reserving, "standing", awake)


FAULTS = (
    token_unchecked,
    ended_twice,
    one_too_many,
    reservation_not_given_back,
    taken_but_still_queued,
    beats_renew_nothing,
    leases_never_end,
    one_attempt_more,
    late_result_dropped,
    released_reservation_queued,
    clock_never_stops,
    promoted_from_anywhere,
    rest_unheeded,
)


@pytest.mark.slow
@pytest.mark.parametrize("ready_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test__model__fault_planted_in_the_store__is_found(store, monkeypatch, plant):
    plant(monkeypatch)
    with pytest.raises((AssertionError, KeyError, AttributeError, SQLAlchemyError)):
        run(store, 400, phases=(Phase.generate,))
