"""Taking over what another study of the store has trained already."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, literal, select

from search.rows import Claim
from search.store.events import record
from search.store.leases import end_attempt, set_state
from search.store.measurements import Cost, Evaluation, MetricPoint, Probe, Proof
from search.store.summary import summarise
from search.store.tables import Base, Trial
from search.store.types import AnyRow

COPIED: tuple[type[Base], ...] = (Evaluation, MetricPoint, Cost, Probe, Proof)

# Made once: building a statement costs more than running it.
TRAINED_ELSEWHERE = (
    select(Trial)
    .where(
        Trial.arch_id == bindparam("arch"),
        Trial.training_key == bindparam("key"),
        Trial.seed == bindparam("seed"),
        Trial.state == "completed",
        Trial.study_id != bindparam("study"),
    )
    .order_by(Trial.id)
)
SPLITS = select(Evaluation.split).where(Evaluation.trial_id == bindparam("trial")).distinct()


def find_source(
    connection: Connection,
    study_id: int,
    arch_id: str,
    training_key: str,
    seed: int,
    splits: Sequence[str],
) -> AnyRow | None:
    """Find a trial of another study with the same training that was read on all the splits."""
    names = {"study": study_id, "arch": arch_id, "key": training_key, "seed": seed}
    for trial in connection.execute(TRAINED_ELSEWHERE, names).all():
        read = set(connection.execute(SPLITS, {"trial": trial.id}).scalars())
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
