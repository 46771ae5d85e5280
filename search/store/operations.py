"""What a person does to a study from outside: let it rest, let it go on, queue trials again."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, and_, func, select, update

from search.errors import InputError, NothingThereError
from search.rows import StudyState, TrialState
from search.spec.budget import training_flops
from search.store.engine import database_time
from search.store.events import record
from search.store.leases import end_stopped, set_state
from search.store.measurements import Cost
from search.store.results import forget_result
from search.store.studies import set_study_state
from search.store.tables import Attempt, Study, Trial
from search.store.types import AnyRow

Wish = Literal["running", "paused", "stopped", "reopened"]
RESTING: frozenset[StudyState] = frozenset({"paused", "stopped"})
ENDED: frozenset[StudyState] = frozenset({"completed", "failed"})
RETRIABLE: tuple[TrialState, ...] = ("failed", "diverged", "stopped")
BY_HAND = "by hand"


@dataclass(frozen=True, kw_only=True)
class Change:
    """What became of a study's state.

    Attributes:
        study: Name of the study.
        before: Its state before.
        state: Its state now.
        changed: Whether there was anything to change.
        running: Trials in hand of a worker.
        queued: Trials that wait for an attempt.
    """

    study: str
    before: StudyState
    state: StudyState
    changed: bool
    running: int
    queued: int


@dataclass(frozen=True, kw_only=True)
class Retried:
    """A trial that is queued again.

    Attributes:
        id: Unique in the store.
        number: Its number in the study.
        before: The state it had ended in.
        cause: Cause of its last attempt's end, where there is one.
        attempts: Attempts made so far.
    """

    id: int
    number: int
    before: TrialState
    cause: str | None
    attempts: int


def change_state(connection: Connection, study_id: int, wish: Wish) -> Change:
    """Let a study rest, end or go on.

    A paused study is meant to go on: its trials wait. A stopped one has ended: what waits becomes
    `stopped` with it, so does what its workers give back, and only `reopened` takes it up again. A
    study that has come to its own end stays as it is, unless a trial of it waits or runs; one that
    does not rest need not be resumed.

    Raises:
        InputError: The study was stopped, and is to go on without being reopened.
    """
    study = connection.execute(select(Study).where(Study.id == study_id)).one()
    counted = {
        row.state: row.n
        for row in connection.execute(
            select(Trial.state, func.count().label("n"))
            .where(Trial.study_id == study_id)
            .group_by(Trial.state)
        )
    }
    running = counted.get("running", 0) + counted.get("proposed", 0)
    queued = counted.get("queued", 0)
    after: StudyState = "running" if wish == "reopened" else wish
    if after == "running":
        if study.state == "stopped" and wish != "reopened":
            raise InputError(
                f"study {study.name!r} was stopped for good; say that it is to be taken up again",
                command="search resume --stopped",
            )
        changes = study.state in RESTING
    else:
        ended = study.state in ENDED and not running and not queued
        changes = study.state != after and study.state != "stopped" and not ended
    if changes:
        set_study_state(connection, study_id, after, None if after == "running" else BY_HAND)
    if changes and after == "stopped":
        end_waiting(connection, study_id)
        queued = 0
    return Change(
        study=study.name,
        before=study.state,
        state=after if changes else study.state,
        changed=changes,
        running=running,
        queued=queued,
    )


def end_waiting(connection: Connection, study_id: int) -> None:
    """End the trials of a stopped study that wait for an attempt."""
    now = database_time(connection)
    waiting = select(Trial.id).where(Trial.study_id == study_id, Trial.state == "queued")
    for trial_id in connection.execute(waiting).scalars().all():
        end_stopped(connection, study_id, trial_id, now)


def retry(
    connection: Connection,
    study_id: int,
    *,
    states: Collection[TrialState] = RETRIABLE[:1],
    causes: Collection[str] = (),
    numbers: Collection[int] = (),
) -> list[Retried]:
    """Queue ended trials again; each keeps its place in the budget.

    What the last attempt measured at its end is removed, its curve is kept until the next attempt
    writes over it, and the attempt itself stays on record. The FLOPs of the whole training are
    reserved again.

    Args:
        connection: Inside the study's lock.
        study_id: The study.
        states: Only trials that ended so.
        causes: Only trials whose last attempt ended for one of these; any by default.
        numbers: Only these trials; every one of them must fit.

    Raises:
        InputError: A trial that was named did not end so.
        NothingThereError: A trial that was named is not there.
    """
    study = connection.execute(select(Study).where(Study.id == study_id)).one()
    found = ended_trials(connection, study_id)
    for number in numbers:
        require_ended(study.name, number, found, states, causes)
    chosen = [
        trial
        for trial in found
        if trial.state in states
        and (not causes or trial.cause in causes)
        and (not numbers or trial.number in numbers)
    ]
    if chosen and study.state in ENDED:  # Workers look for work in studies that run.
        set_study_state(connection, study_id, "running", None)
    now = database_time(connection)
    for trial in chosen:
        queue_again(connection, study, trial)
        record(connection, study_id, "trial_retried", now, trial.id, before=trial.state)
    return [
        Retried(
            id=trial.id,
            number=trial.number,
            before=trial.state,
            cause=trial.cause,
            attempts=trial.attempt,
        )
        for trial in chosen
    ]


def ended_trials(connection: Connection, study_id: int) -> Sequence[AnyRow]:
    """Return every trial by number, with the cause of its newest attempt's end."""
    newest = and_(Attempt.trial_id == Trial.id, Attempt.number == Trial.attempt)
    return connection.execute(
        select(
            Trial.id,
            Trial.number,
            Trial.state,
            Trial.attempt,
            Trial.recipe,
            Trial.requested_steps,
            Trial.training_flops,
            Attempt.cause,
            Cost.flops,
        )
        .outerjoin(Attempt, newest)
        .outerjoin(Cost, Cost.trial_id == Trial.id)
        .where(Trial.study_id == study_id)
        .order_by(Trial.number)
    ).all()


def require_ended(
    name: str,
    number: int,
    found: Sequence[AnyRow],
    states: Collection[TrialState],
    causes: Collection[str],
) -> None:
    """Refuse a trial that was named and cannot be queued again.

    Raises:
        InputError: It did not end so.
        NothingThereError: It is not there.
    """
    trial = next((row for row in found if row.number == number), None)
    if trial is None:
        there = f"it has trials 0 to {found[-1].number}" if found else "it has no trial yet"
        raise NothingThereError(f"study {name!r} has no trial {number}; {there}")
    if trial.state not in states:
        raise InputError(
            f"trial {number} of {name!r} is {trial.state}; only what is {' or '.join(states)} "
            "can be tried again"
        )
    if causes and trial.cause not in causes:
        raise InputError(
            f"trial {number} of {name!r} ended for the cause {trial.cause or 'none'}, not for "
            f"{' or '.join(causes)}"
        )


def queue_again(connection: Connection, study: AnyRow, trial: AnyRow) -> None:
    """Take an ended trial's result away and queue it."""
    forget_result(connection, trial.id)
    set_state(connection, trial.id, "queued", "tried again by hand")
    connection.execute(
        update(Trial)
        .where(Trial.id == trial.id)
        .values(
            training_flops=whole_flops(study, trial),
            steps=None,
            sequences=None,
            seconds=None,
            diverged_at=None,
            environment_id=None,
            error=None,
            finished_at=None,
        )
    )


def whole_flops(study: AnyRow, trial: AnyRow) -> int:
    """Return the FLOPs to reserve for a training that starts over.

    A trial that ended with a result has given back what it did not spend; any other still holds
    all that was reserved for it.
    """
    if trial.flops is None:
        return int(trial.training_flops)
    recipe = {**study.spec["training"], **trial.recipe}
    return training_flops(
        trial.flops,
        steps=int(trial.requested_steps or recipe["steps"]),
        batch_size=int(recipe["batch_size"]),
    )
