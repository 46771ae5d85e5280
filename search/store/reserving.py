"""Reserve, the first of a claim's two short transactions: check the budget, take a number.

A claim may also take up a trial that has its architecture: one that waits, or one to promote.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from search.errors import NothingThereError
from search.rows import Claim, Counts, Phase, Promotion
from search.store.engine import DatabaseTime
from search.store.events import record
from search.store.leases import set_state, start_attempt, start_clock
from search.store.reaping import may_be_lost, reap
from search.store.studies import busy_until
from search.store.tables import SUM_OF_FLOPS, Attempt, SpaceRevision, Study, Trial
from search.store.types import AnyRow

Choose = Callable[[Counts], Phase | None]
Resume = Callable[[Counts], bool]
Promote = Callable[[Counts], Promotion | None]


# Made once: building a statement costs more than running it.
LIVE = (Attempt.study_id == Study.id, Attempt.ended_at.is_(None))
NEWEST_REVISION = (
    select(SpaceRevision.id)
    .where(SpaceRevision.study_id == Study.id)
    .order_by(SpaceRevision.number.desc())
    .limit(1)
)
NEXT_NUMBER = select(func.coalesce(func.max(Trial.number) + 1, 0)).where(Trial.study_id == Study.id)
QUEUED = select(Trial.id).where(Trial.study_id == Study.id, Trial.state == "queued")
# All that a reservation asks about a study, at one moment.
STANDING = select(
    Study.id,
    Study.state,
    Study.busy_s,
    Study.busy_since,
    DatabaseTime().label("now"),
    select(func.min(Attempt.lease_expires_at)).where(*LIVE).scalar_subquery().label("first_expiry"),
    select(func.max(Attempt.lease_expires_at)).where(*LIVE).scalar_subquery().label("last_expiry"),
    NEWEST_REVISION.scalar_subquery().label("revision_id"),
    NEXT_NUMBER.scalar_subquery().label("next_number"),
    QUEUED.exists().label("has_queued"),
).where(Study.id == bindparam("study"))
COUNTS = (
    select(Trial.phase, func.count(), SUM_OF_FLOPS)
    .where(Trial.study_id == bindparam("study"))
    .group_by(Trial.phase)
)
FIRST_QUEUED = (
    select(Trial)
    .where(Trial.study_id == bindparam("study"), Trial.state == "queued")
    .order_by(Trial.number)
    .limit(1)
    .with_for_update(skip_locked=True)
)
PRUNED = (
    select(Trial)
    .where(
        Trial.id == bindparam("trial"),
        Trial.state == "pruned",
        Trial.steps == bindparam("steps"),
    )
    .with_for_update(skip_locked=True)
)
INSERT_TRIAL = insert(Trial).returning(Trial.id)
SET_RUNNING = (
    update(Study).where(Study.id == bindparam("study")).values(state="running", reason=None)
)


def reserve(
    connection: Connection,
    study_id: int,
    worker_id: int,
    choose: Choose,
    resume: Resume | None,
    promote: Promote | None,
    lease_s: float,
) -> Claim | None:
    """Take a queued trial, one to promote, or the next number for the phase of `choose`."""
    study = standing(connection, study_id)
    if study.state in ("paused", "stopped"):
        return None
    if may_be_lost(connection, study.first_expiry, study.now) and reap(
        connection, study_id, study.now
    ):
        study = standing(connection, study_id)
    counts = count(
        connection, study_id, busy_until(connection, study, study.now, study.last_expiry)
    )
    claim = None
    if study.has_queued and (resume is None or resume(counts)):
        claim = take_queued(connection, study_id, worker_id, study.now, lease_s)
    promotion = promote(counts) if promote is not None and claim is None else None
    if promotion is not None:
        claim = take_pruned(connection, counts, promotion, worker_id, study.now, lease_s)
    if claim is None:
        phase = choose(counts)
        if phase is None:
            return None
        claim = take_number(connection, study, worker_id, phase, lease_s)
    if study.busy_since is None:
        start_clock(connection, study_id, study.now)
    if study.state != "running":
        connection.execute(SET_RUNNING, {"study": study_id})
    return claim


def standing(connection: Connection, study_id: int) -> AnyRow:
    """Read how a study stands.

    Raises:
        NothingThereError: There is no such study.
    """
    study = connection.execute(STANDING, {"study": study_id}).one_or_none()
    if study is None:
        raise NothingThereError(f"there is no study with id {study_id}")
    return study


def count(connection: Connection, study_id: int, busy_s: float) -> Counts:
    """Count what a budget is compared with."""
    phases = connection.execute(COUNTS, {"study": study_id}).all()
    by_phase = {phase: n for phase, n, _ in phases}
    return Counts(
        by_phase=by_phase,
        started=sum(by_phase.values()),
        busy_s=busy_s,
        flops=sum(int(flops) for _, _, flops in phases),
    )


def take_queued(
    connection: Connection, study_id: int, worker_id: int, now: datetime, lease_s: float
) -> Claim | None:
    """Start a new attempt at the queued trial of the lowest number."""
    trial = connection.execute(FIRST_QUEUED, {"study": study_id}).one_or_none()
    if trial is None:
        return None
    claim = next_attempt(connection, trial, worker_id, now, lease_s)
    record(connection, study_id, "trial_resumed", now, trial.id, attempt=claim.token)
    return claim


def take_pruned(
    connection: Connection,
    counts: Counts,
    promotion: Promotion,
    worker_id: int,
    now: datetime,
    lease_s: float,
) -> Claim | None:
    """Promote a trial, unless somebody else did or its steps would not fit into the budget."""
    names = {"trial": promotion.trial_id, "steps": promotion.steps}
    trial = connection.execute(PRUNED, names).one_or_none()
    if trial is None:
        return None
    flops = trial.training_flops * promotion.until_steps // promotion.steps
    more = flops - trial.training_flops
    if promotion.most_flops is not None and counts.flops + more > promotion.most_flops:
        return None
    fields = {"requested_steps": promotion.until, "training_flops": flops, "finished_at": None}
    claim = next_attempt(connection, trial, worker_id, now, lease_s, **fields)
    steps = {"from_step": promotion.steps, "until_step": promotion.until_steps}
    record(
        connection, trial.study_id, "trial_promoted", now, trial.id, attempt=claim.token, **steps
    )
    return replace(claim, until=promotion.until)


def next_attempt(
    connection: Connection,
    trial: AnyRow,
    worker_id: int,
    now: datetime,
    lease_s: float,
    **fields: Any,
) -> Claim:
    """Start another attempt at a trial that has its architecture."""
    token = trial.attempt + 1
    set_state(connection, trial.id, "running", None, attempt=token, worker_id=worker_id, **fields)
    start_attempt(
        connection,
        study_id=trial.study_id,
        trial_id=trial.id,
        number=token,
        worker_id=worker_id,
        now=now,
        lease_s=lease_s,
    )
    return Claim(
        study_id=trial.study_id,
        trial_id=trial.id,
        number=trial.number,
        phase=trial.phase,
        token=token,
        lease_s=lease_s,
        spec=trial.spec,
        seed=trial.seed,
        seed_index=trial.seed_index,
        recipe=trial.recipe,
        role=trial.role,
        until=trial.requested_steps,
        promoted_from=trial.steps,
    )


def take_number(
    connection: Connection, study: AnyRow, worker_id: int, phase: Phase, lease_s: float
) -> Claim:
    """Insert the next trial as a reservation."""
    if study.revision_id is None:
        raise NothingThereError(f"study {study.id} has no space revision")
    trial_id = connection.execute(
        INSERT_TRIAL,
        {
            "study_id": study.id,
            "revision_id": study.revision_id,
            "number": study.next_number,
            "phase": phase,
            "state": "proposed",
            "sampler_params": {},
            "sampler_attrs": {},
            "worker_id": worker_id,
            "attempt": 1,
            "training_flops": 0,
            "created_at": study.now,
        },
    ).scalar_one()
    start_attempt(
        connection,
        study_id=study.id,
        trial_id=trial_id,
        number=1,
        worker_id=worker_id,
        now=study.now,
        lease_s=lease_s,
    )
    return Claim(
        study_id=study.id,
        trial_id=trial_id,
        number=study.next_number,
        phase=phase,
        token=1,
        lease_s=lease_s,
    )
