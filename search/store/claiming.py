"""Claims: the two short transactions between which a strategy thinks.

Reserve checks the budget and takes the next number under a lease; commit writes the architecture
under the unique constraint. Nothing is locked while the strategy thinks.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, literal, select, update

from mixers.notation import format_layer
from mixers.spec import EncoderSpec, canonical_json
from search.errors import NothingThereError
from search.rows import Claim, CommitOutcome, Counts, Phase, Promotion
from search.store.engine import database_time
from search.store.events import record
from search.store.finite import require_finite
from search.store.leases import end_attempt, holds_lease, set_state, start_attempt
from search.store.measurements import Cost, Evaluation, MetricPoint, Probe, Proof
from search.store.reaping import reap
from search.store.studies import busy_seconds, newest_revision
from search.store.summary import summarise
from search.store.tables import Base, Study, Trial, TrialBlock
from search.store.types import AnyRow

Choose = Callable[[Counts], Phase | None]
Resume = Callable[[Counts], bool]
Promote = Callable[[Counts], Promotion | None]
INSERT_TRIAL = insert(Trial).returning(Trial.id)
COPIED: tuple[type[Base], ...] = (Evaluation, MetricPoint, Cost, Probe, Proof)


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
    study = connection.execute(select(Study).where(Study.id == study_id)).one_or_none()
    if study is None:
        raise NothingThereError(f"there is no study with id {study_id}")
    if study.state in ("paused", "stopped"):
        return None
    now = database_time(connection)
    if reap(connection, study_id, now):
        study = connection.execute(select(Study).where(Study.id == study_id)).one()
    counts = count(connection, study)
    claim = None
    if resume is None or resume(counts):
        claim = take_queued(connection, study_id, worker_id, now, lease_s)
    promotion = promote(counts) if promote is not None and claim is None else None
    if promotion is not None:
        claim = take_pruned(connection, counts, promotion, worker_id, now, lease_s)
    if claim is None:
        phase = choose(counts)
        if phase is None:
            return None
        claim = take_number(connection, study_id, worker_id, phase, now, lease_s)
    if study.state != "running":
        connection.execute(
            update(Study).where(Study.id == study_id).values(state="running", reason=None)
        )
    return claim


def count(connection: Connection, study: AnyRow) -> Counts:
    """Count what a budget is compared with."""
    phases = connection.execute(
        select(Trial.phase, func.count(), func.sum(Trial.training_flops))
        .where(Trial.study_id == study.id)
        .group_by(Trial.phase)
    ).all()
    by_phase = {phase: n for phase, n, _ in phases}
    return Counts(
        by_phase=by_phase,
        started=sum(by_phase.values()),
        busy_s=busy_seconds(connection, study),
        flops=sum(int(flops) for _, _, flops in phases),
    )


def take_queued(
    connection: Connection, study_id: int, worker_id: int, now: datetime, lease_s: float
) -> Claim | None:
    """Start a new attempt at the queued trial of the lowest number."""
    trial = connection.execute(
        select(Trial)
        .where(Trial.study_id == study_id, Trial.state == "queued")
        .order_by(Trial.number)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).one_or_none()
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
    trial = connection.execute(
        select(Trial)
        .where(
            Trial.id == promotion.trial_id,
            Trial.state == "pruned",
            Trial.steps == promotion.steps,
        )
        .with_for_update(skip_locked=True)
    ).one_or_none()
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
    connection: Connection,
    study_id: int,
    worker_id: int,
    phase: Phase,
    now: datetime,
    lease_s: float,
) -> Claim:
    """Insert the next trial as a reservation."""
    revision = newest_revision(connection, study_id)
    if revision is None:
        raise NothingThereError(f"study {study_id} has no space revision")
    number = connection.execute(
        select(func.coalesce(func.max(Trial.number) + 1, 0)).where(Trial.study_id == study_id)
    ).scalar_one()
    trial_id = connection.execute(
        INSERT_TRIAL,
        {
            "study_id": study_id,
            "revision_id": revision.id,
            "number": number,
            "phase": phase,
            "state": "proposed",
            "sampler_params": {},
            "sampler_attrs": {},
            "worker_id": worker_id,
            "attempt": 1,
            "training_flops": 0,
            "created_at": now,
        },
    ).scalar_one()
    start_attempt(
        connection,
        study_id=study_id,
        trial_id=trial_id,
        number=1,
        worker_id=worker_id,
        now=now,
        lease_s=lease_s,
    )
    return Claim(
        study_id=study_id,
        trial_id=trial_id,
        number=number,
        phase=phase,
        token=1,
        lease_s=lease_s,
    )


def commit(
    connection: Connection,
    claim: Claim,
    spec: EncoderSpec,
    *,
    seed: int,
    seed_index: int,
    training_key: str,
    role: str | None,
    params: Mapping[str, Any],
    attrs: Mapping[str, Any],
    study_attrs: Mapping[str, Any],
    recipe: Mapping[str, float],
    route: Mapping[str, Any],
    flops: int,
    most_flops: float | None,
    splits: Sequence[str],
    until: int | None,
) -> CommitOutcome:
    """Give a reservation its architecture; see `Store.commit`."""
    notes = {"params": params, "attrs": attrs, "study_attrs": study_attrs, "recipe": recipe}
    require_finite(notes, "commit")
    if not holds_lease(connection, claim):
        return "lost"
    arch_id = spec.arch_id
    taken = connection.execute(
        select(Trial.id).where(
            Trial.study_id == claim.study_id,
            Trial.arch_id == arch_id,
            Trial.training_key == training_key,
            Trial.seed_index == seed_index,
        )
    ).first()
    if taken is not None:
        # Its own: the same commit came before, and the answer never arrived.
        return "running" if taken.id == claim.trial_id else "duplicate"
    if most_flops is not None and reserved_flops(connection, claim.study_id) + flops > most_flops:
        return "no room"
    now = database_time(connection)
    set_state(
        connection,
        claim.trial_id,
        "running",
        None,
        role=role,
        arch_id=arch_id,
        code=spec.code,
        notation=spec.notation,
        mixers=layer_notations(spec),
        n_layers=spec.n_layers,
        spec=json.loads(canonical_json(spec)),
        seed=seed,
        seed_index=seed_index,
        recipe=dict(recipe),
        route=dict(route),
        training_key=training_key,
        sampler_params=dict(params),
        sampler_attrs=dict(attrs),
        training_flops=flops,
        requested_steps=until,
        started_at=now,
    )
    write_blocks(connection, claim, spec)
    if study_attrs:
        add_notes(connection, claim.study_id, study_attrs)
    source = find_source(connection, claim.study_id, arch_id, training_key, seed, splits)
    if source is None:
        record(
            connection,
            claim.study_id,
            "trial_started",
            now,
            claim.trial_id,
            number=claim.number,
            phase=claim.phase,
            role=role,
            notation=spec.notation,
        )
        return "running"
    reuse(connection, claim, source, arch_id, now)
    return "reused"


def add_notes(connection: Connection, study_id: int, notes: Mapping[str, Any]) -> None:
    """Add to a study's notes; those of another worker's commit meanwhile stay."""
    here = Study.id == study_id
    known = connection.execute(select(Study.attrs).where(here)).scalar_one()
    connection.execute(update(Study).where(here).values(attrs={**known, **notes}))


def reserved_flops(connection: Connection, study_id: int) -> int:
    """Return the training FLOPs of a study, spent and reserved."""
    total = select(func.sum(Trial.training_flops)).where(Trial.study_id == study_id)
    return int(connection.execute(total).scalar_one())


def layer_notations(spec: EncoderSpec) -> list[str]:
    """Return the notation of each layer; what the spec's sizes decide is left out."""
    sizes = {"d_model": spec.d_model, "max_seq_len": spec.max_seq_len}
    return [format_layer(block.mixer, **sizes) for block in spec.blocks]


def write_blocks(connection: Connection, claim: Claim, spec: EncoderSpec) -> None:
    """Write one row per layer, with the package that its mixer comes from."""
    revision = newest_revision(connection, claim.study_id)
    plugins = revision.plugins if revision is not None else {}
    blocks = []
    for layer, (block, notation) in enumerate(zip(spec.blocks, layer_notations(spec), strict=True)):
        distribution, version = plugins.get(block.mixer.kind, (None, None))
        blocks.append(
            {
                "trial_id": claim.trial_id,
                "layer": layer,
                "kind": block.mixer.kind,
                "config": json.loads(canonical_json(block.mixer)),
                "notation": notation,
                "distribution": distribution,
                "version": version,
            }
        )
    connection.execute(insert(TrialBlock), blocks)


def find_source(
    connection: Connection,
    study_id: int,
    arch_id: str,
    training_key: str,
    seed: int,
    splits: Sequence[str],
) -> AnyRow | None:
    """Find a trial of another study with the same training that was read on all the splits."""
    candidates = connection.execute(
        select(Trial)
        .where(
            Trial.arch_id == arch_id,
            Trial.training_key == training_key,
            Trial.seed == seed,
            Trial.state == "completed",
            Trial.study_id != study_id,
        )
        .order_by(Trial.id)
    ).all()
    for trial in candidates:
        read = set(
            connection.execute(
                select(Evaluation.split).where(Evaluation.trial_id == trial.id).distinct()
            ).scalars()
        )
        if read.issuperset(splits):
            return trial
    return None


def reuse(
    connection: Connection, claim: Claim, source: AnyRow, arch_id: str, now: datetime
) -> None:
    """Complete a trial with the values of another; it costs no time and no FLOPs."""
    for table in COPIED:
        columns = table.__table__.columns
        copied = [
            literal(claim.trial_id).label("trial_id") if column.name == "trial_id" else column
            for column in columns
        ]
        connection.execute(
            insert(table).from_select(
                [column.name for column in columns],
                select(*copied).where(columns["trial_id"] == source.id),
            )
        )
    reason = f"trained as trial {source.id} of another study"
    set_state(
        connection,
        claim.trial_id,
        "completed",
        reason,
        training_flops=0,
        steps=source.steps,
        sequences=source.sequences,
        seconds=0.0,
        environment_id=source.environment_id,
        reused_from=source.id,
        finished_at=now,
    )
    end_attempt(connection, claim, now, "reused", message=reason)
    summarise(connection, claim.study_id, arch_id)
    record(connection, claim.study_id, "trial_reused", now, claim.trial_id, reused_from=source.id)
