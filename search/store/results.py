"""What a training process ends with: a result or a failure."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from sqlalchemy import Connection, bindparam, delete, select, update

from search.messages import (
    Costs,
    Outcome,
    ProbeReading,
    TrialFailure,
    TrialResult,
)
from search.rows import Claim, DocumentSums, FailOutcome
from search.spec.budget import TRAINING_TO_FORWARD_FLOPS
from search.store.engine import DatabaseTime, database_time, dump_json
from search.store.events import record
from search.store.finite import non_finite
from search.store.inserting import UPSERT, WithRows
from search.store.leases import UPDATE_TRIAL, end_attempt, retry_or_fail
from search.store.measurements import Cost, Environment, Evaluation, Probe, Proof
from search.store.summary import summarise
from search.store.tables import Attempt, Study, Trial
from search.store.types import AnyRow

# Made once: building a statement costs more than running it.
KNOWN_ENVIRONMENT = select(Environment.id).where(Environment.sha256 == bindparam("environment"))
# All that the end of a trial asks, at one moment.
ENDING = (
    select(
        DatabaseTime().label("now"),
        Trial.arch_id,
        Trial.diverged_at,
        Trial.reason,
        Study.objective,
        KNOWN_ENVIRONMENT.scalar_subquery().label("environment_id"),
    )
    .join(Study, Study.id == Trial.study_id)
    .where(Trial.id == bindparam("trial"))
)
END_TRIAL = WithRows(
    UPDATE_TRIAL,
    {"evaluations": Evaluation, "costs": Cost, "probes": Probe, "proofs": Proof},
)
RESULTS: tuple[str, ...] = get_args(Outcome)


def finish(connection: Connection, claim: Claim, result: TrialResult) -> bool:
    """Store a result; that of a lost lease is kept with its attempt only."""
    trial = connection.execute(
        ENDING,
        {"trial": claim.trial_id, "environment": facts_sha256(result.environment)},
    ).one_or_none()
    if trial is None:  # its reservation is gone
        return False
    now = trial.now
    outcome, reason = judged(result, trial)
    if not end_attempt(connection, claim, now, outcome, message=reason, step=result.steps):
        return keep_late(connection, claim, result)
    if claim.token > 1:
        forget_result(connection, claim.trial_id)
    # What a diverged network measures says nothing; its curve stays.
    evaluations = {} if outcome == "diverged" else result.evaluations
    columns = {
        "state": outcome,
        "reason": reason,
        "steps": result.steps,
        "sequences": result.sequences,
        "seconds": result.seconds,
        "training_flops": TRAINING_TO_FORWARD_FLOPS * result.costs.flops * result.sequences,
        "environment_id": trial.environment_id or environment_id(connection, result.environment),
        "finished_at": now,
    }
    measured = measured_rows(claim.trial_id, result, evaluations, trial.objective)
    END_TRIAL.run(connection, {"trial": claim.trial_id, **columns}, measured)
    if outcome == "completed":
        summarise(connection, claim.study_id, trial.arch_id or "")
    record(
        connection,
        claim.study_id,
        f"trial_{outcome}",
        now,
        claim.trial_id,
        number=claim.number,
        reason=reason,
        evaluations=evaluations,
    )
    return True


def measured_rows(
    trial_id: int,
    result: TrialResult,
    evaluations: Mapping[Any, Mapping[str, float]],
    objective: str,
) -> dict[str, list[dict[str, Any]]]:
    """Return what was measured of a trial, the rows of each table."""
    proofs = []
    if result.proof is not None:
        layers = [layer.model_dump(mode="json") for layer in result.proof.layers]
        proofs = [
            {
                "trial_id": trial_id,
                "sha256": result.proof.sha256,
                "text": result.proof.text,
                "layers": layers,
            }
        ]
    return {
        "evaluations": evaluation_rows(trial_id, evaluations, result.documents, objective),
        "costs": [{"trial_id": trial_id, **cost_columns(result.costs)}],
        "probes": probe_rows(trial_id, result.probes),
        "proofs": proofs,
    }


def forget_result(connection: Connection, trial_id: int) -> None:
    """Take a trial's measurements away; the next attempt writes them anew, its curve stays."""
    for table in (Evaluation, Cost, Probe, Proof):
        connection.execute(delete(table).where(table.trial_id == trial_id))


def judged(result: TrialResult, trial: AnyRow) -> tuple[Any, str]:
    """Return outcome and reason: a non-finite value on the way or at the end means diverged."""
    found = non_finite(result.evaluations)
    if found is not None:
        return "diverged", f"{found} at step {result.steps}"
    if trial.diverged_at is not None and result.outcome != "diverged":
        return "diverged", trial.reason
    return result.outcome, result.reason


def keep_late(connection: Connection, claim: Claim, result: TrialResult) -> bool:
    """Settle a result whose attempt has ended; says whether that very result is on record.

    A worker that never heard the answer sends its result again. Otherwise somebody else has the
    trial: the result is kept with its attempt, whose outcome stays, and nothing else reads it.
    """
    here = (Attempt.trial_id == claim.trial_id, Attempt.number == claim.token)
    outcome = connection.execute(select(Attempt.outcome).where(*here)).scalar_one_or_none()
    if outcome in RESULTS:
        return True
    document = result.model_dump(mode="json")
    if non_finite(document) is not None:
        document = {"outcome": "diverged", "steps": result.steps}
    connection.execute(update(Attempt).where(*here).values(result=document))
    return False


def fail(connection: Connection, claim: Claim, failure: TrialFailure) -> FailOutcome:
    """Store a failure; the FLOPs reserved stay spent, so a failing study comes to an end."""
    now = database_time(connection)
    if not end_attempt(
        connection,
        claim,
        now,
        "failed",
        cause=failure.cause,
        message=failure.message,
        traceback=failure.traceback,
    ):
        return known_failure(connection, claim, failure)
    return retry_or_fail(
        connection, claim.study_id, claim.trial_id, failure.cause, failure.message, now
    )


def known_failure(connection: Connection, claim: Claim, failure: TrialFailure) -> FailOutcome:
    """Say what became of a failure that is told a second time, since the answer never arrived."""
    told = connection.execute(
        select(Attempt.cause, Trial.state)
        .join(Trial, Trial.id == Attempt.trial_id)
        .where(
            Attempt.trial_id == claim.trial_id,
            Attempt.number == claim.token,
            Attempt.outcome == "failed",
        )
    ).one_or_none()
    if told is None or told.cause != failure.cause:
        return "lost"
    return "failed" if told.state == "failed" else "queued"


def evaluation_rows(
    trial_id: int,
    evaluations: Mapping[Any, Mapping[str, float]],
    documents: Mapping[Any, DocumentSums],
    objective: str,
) -> list[dict[str, Any]]:
    """Return one row per split and metric, with the objective's sums by document."""
    return [
        {
            "trial_id": trial_id,
            "split": split,
            "metric": metric,
            "value": value,
            "by_document": by_document(documents.get(split)) if metric == objective else None,
        }
        for split, metrics in evaluations.items()
        for metric, value in metrics.items()
    ]


def by_document(sums: DocumentSums | None) -> dict[str, Any] | None:
    """Return sums by document as they are stored, without digits that no metric has."""
    if sums is None or non_finite(sums.sums) is not None:
        return None
    return {"n": list(sums.n), "sums": [float(f"{total:.9g}") for total in sums.sums]}


def cost_columns(costs: Costs) -> dict[str, Any]:
    """Return the row of `costs`; a time that was not measured stays empty."""
    step, latency = costs.step_s, costs.latency_s
    either = latency or step
    columns: dict[str, Any] = {
        "params": costs.params,
        "flops": costs.flops,
        "peak_memory_bytes": costs.peak_memory_bytes,
    }
    if step is not None:
        columns |= {
            "step_s": step.median,
            "step_s_low": step.low,
            "step_s_high": step.high,
            "step_n": step.n,
            "step_batch_size": step.batch_size,
        }
    if latency is not None:
        columns |= {
            "latency_s": latency.median,
            "latency_s_low": latency.low,
            "latency_s_high": latency.high,
            "latency_n": latency.n,
            "latency_batch_size": latency.batch_size,
        }
    if either is not None:
        columns |= {"seq_len": either.seq_len, "device": either.device, "dtype": either.dtype}
    return {name: value for name, value in columns.items() if non_finite(value) is None}


def probe_rows(trial_id: int, probes: Iterable[ProbeReading]) -> list[dict[str, Any]]:
    """Return one row per reading; a non-finite one reads as absent."""
    return [
        {
            "trial_id": trial_id,
            "moment": probe.when,
            "name": name,
            "value": value if non_finite(value) is None else None,
        }
        for probe in probes
        for name, value in probe.readings.items()
    ]


def facts_sha256(facts: Mapping[str, str]) -> str:
    """Return the hash by which a set of facts is known."""
    return hashlib.sha256(dump_json(dict(sorted(facts.items()))).encode()).hexdigest()


def environment_id(connection: Connection, facts: Mapping[str, str]) -> int | None:
    """Return the id of a set of facts, stored at its first use."""
    if not facts:
        return None
    names = {"environment": facts_sha256(facts)}
    found = connection.execute(KNOWN_ENVIRONMENT, names).scalar_one_or_none()
    if found is not None:
        return found
    connection.execute(
        UPSERT[connection.dialect.name](Environment)
        .values(sha256=names["environment"], facts=dict(sorted(facts.items())))
        .on_conflict_do_nothing(index_elements=["sha256"])
    )
    return connection.execute(KNOWN_ENVIRONMENT, names).scalar_one()
