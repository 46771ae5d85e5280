"""What comes back from a training process: reports on the way, then a result or a failure."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from search.messages import (
    Costs,
    Message,
    Outcome,
    ProbeReading,
    Progress,
    Report,
    Resumed,
    TrialFailure,
    TrialResult,
    Warned,
)
from search.rows import Claim, DocumentSums, FailOutcome
from search.spec.budget import TRAINING_TO_FORWARD_FLOPS
from search.store.engine import database_time, dump_json
from search.store.events import record
from search.store.finite import non_finite
from search.store.leases import (
    end_attempt,
    holds_lease,
    retry_or_fail,
    set_state,
    update_live,
)
from search.store.measurements import (
    Cost,
    Environment,
    Evaluation,
    Event,
    MetricPoint,
    Probe,
    Proof,
)
from search.store.summary import summarise
from search.store.tables import Attempt, Study, Trial

INSERT: Mapping[str, Callable[..., Any]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}


def upsert_point(dialect: str) -> Any:
    """The statement that writes a point, or overwrites it."""
    statement = INSERT[dialect](MetricPoint)
    return statement.on_conflict_do_update(
        index_elements=["trial_id", "split", "metric", "step"],
        set_={"value": statement.excluded.value},
    )


# Made once: building a statement costs more than SQLite needs to run it.
UPSERT_POINT = {dialect: upsert_point(dialect) for dialect in INSERT}
INSERT_COST = insert(Cost)
INSERT_PROOF = insert(Proof)
INSERT_EVALUATION = insert(Evaluation)
INSERT_PROBE = insert(Probe)
RESULTS: tuple[str, ...] = get_args(Outcome)


def report(connection: Connection, claim: Claim, reports: Sequence[Message]) -> bool:
    """Store reports; those of a lost lease are dropped."""
    if not reports:
        return holds_lease(connection, claim)
    columns = progress_columns(reports)
    if columns and not update_live(connection, claim, **columns):
        return False
    if not columns and not holds_lease(connection, claim):
        return False
    readings = [message for message in reports if isinstance(message, Report)]
    bad = [(message.step, non_finite(message.metrics)) for message in readings]
    bad = [(step, what) for step, what in bad if what is not None]
    points = [
        {
            "trial_id": claim.trial_id,
            "split": message.split,
            "metric": metric,
            "step": message.step,
            "value": value,
        }
        for message in readings
        for metric, value in message.metrics.items()
        if non_finite(value) is None
    ]
    is_news = bool(points) and readings[-1].step > last_reading(connection, claim)
    write_points(connection, points)
    if bad:
        step, what = bad[0]
        connection.execute(
            update(Trial)
            .where(Trial.id == claim.trial_id, Trial.diverged_at.is_(None))
            .values(diverged_at=step, reason=f"{what} at step {step}")
        )
    if is_news:
        last = points[-1]["step"]
        now = database_time(connection)
        metrics = {f"{p['split']}.{p['metric']}": p["value"] for p in points if p["step"] == last}
        record(
            connection, claim.study_id, "report", now, claim.trial_id, step=last, metrics=metrics
        )
    warnings = [message.text for message in reports if isinstance(message, Warned)]
    told = warnings_told(connection, claim) if warnings else set()
    for text in (text for text in warnings if text not in told):
        now = database_time(connection)
        record(connection, claim.study_id, "warning", now, claim.trial_id, text=text)
    return True


def warnings_told(connection: Connection, claim: Claim) -> set[str]:
    """Return the warnings of a trial that are on record; the same one again is no news."""
    known = select(Event.data).where(
        Event.study_id == claim.study_id,
        Event.trial_id == claim.trial_id,
        Event.kind == "warning",
    )
    return {data["text"] for data in connection.execute(known).scalars() if data}


def progress_columns(reports: Sequence[Message]) -> dict[str, int]:
    """Return what reports say about how far their attempt is."""
    columns: dict[str, int] = {}
    for message in reports:
        if isinstance(message, Warned):
            continue
        columns["step"] = max(message.step, columns.get("step", 0))
        if isinstance(message, Progress):
            columns["n_steps"] = message.steps
        if isinstance(message, Resumed):
            columns["resumed_step"] = message.step
    return columns


def last_reading(connection: Connection, claim: Claim) -> int:
    """Return the step of the newest reading on record.

    A later attempt tells some once more; so does a worker that never heard the answer.
    """
    newest = select(func.max(MetricPoint.step)).where(MetricPoint.trial_id == claim.trial_id)
    return connection.execute(newest).scalar_one() or 0


def write_points(connection: Connection, points: Sequence[Mapping[str, Any]]) -> None:
    """Write points; a resumed attempt overwrites those that it makes again."""
    if not points:
        return
    connection.execute(
        UPSERT_POINT[connection.dialect.name],
        list({tuple(p[k] for k in ("split", "metric", "step")): dict(p) for p in points}.values()),
    )


def finish(connection: Connection, claim: Claim, result: TrialResult) -> bool:
    """Store a result; that of a lost lease is kept with its attempt only."""
    now = database_time(connection)
    outcome, reason = judged(connection, claim, result)
    if not end_attempt(connection, claim, now, outcome, message=reason, step=result.steps):
        return keep_late(connection, claim, result)
    spent = TRAINING_TO_FORWARD_FLOPS * result.costs.flops * result.sequences
    set_state(
        connection,
        claim.trial_id,
        outcome,
        reason,
        steps=result.steps,
        sequences=result.sequences,
        seconds=result.seconds,
        training_flops=spent,
        environment_id=environment_id(connection, result.environment),
        finished_at=now,
    )
    if claim.token > 1:
        forget_result(connection, claim.trial_id)
    # What a diverged network measures says nothing; its curve stays.
    evaluations = {} if outcome == "diverged" else result.evaluations
    write_evaluations(connection, claim, evaluations, result.documents)
    connection.execute(INSERT_COST, {"trial_id": claim.trial_id, **cost_columns(result.costs)})
    write_probes(connection, claim.trial_id, result.probes)
    if result.proof is not None:
        connection.execute(
            INSERT_PROOF,
            {
                "trial_id": claim.trial_id,
                "sha256": result.proof.sha256,
                "text": result.proof.text,
                "layers": [layer.model_dump(mode="json") for layer in result.proof.layers],
            },
        )
    if outcome == "completed":
        arch_id = connection.execute(
            select(Trial.arch_id).where(Trial.id == claim.trial_id)
        ).scalar_one()
        summarise(connection, claim.study_id, arch_id or "")
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


def forget_result(connection: Connection, trial_id: int) -> None:
    """Take a trial's measurements away; the next attempt writes them anew, its curve stays."""
    for table in (Evaluation, Cost, Probe, Proof):
        connection.execute(delete(table).where(table.trial_id == trial_id))


def judged(connection: Connection, claim: Claim, result: TrialResult) -> tuple[Any, str]:
    """Return outcome and reason: a non-finite value on the way or at the end means diverged."""
    found = non_finite(result.evaluations)
    if found is not None:
        return "diverged", f"{found} at step {result.steps}"
    trial = connection.execute(
        select(Trial.diverged_at, Trial.reason).where(Trial.id == claim.trial_id)
    ).one_or_none()
    if trial is not None and trial.diverged_at is not None and result.outcome != "diverged":
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


def write_evaluations(
    connection: Connection,
    claim: Claim,
    evaluations: Mapping[Any, Mapping[str, float]],
    documents: Mapping[Any, DocumentSums],
) -> None:
    """Write one row per split and metric, with the objective's sums by document."""
    objective = connection.execute(
        select(Study.objective).where(Study.id == claim.study_id)
    ).scalar_one()
    rows = [
        {
            "trial_id": claim.trial_id,
            "split": split,
            "metric": metric,
            "value": value,
            "by_document": by_document(documents.get(split)) if metric == objective else None,
        }
        for split, metrics in evaluations.items()
        for metric, value in metrics.items()
    ]
    if rows:
        connection.execute(INSERT_EVALUATION, rows)


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


def write_probes(connection: Connection, trial_id: int, probes: Iterable[ProbeReading]) -> None:
    """Write one row per reading; a non-finite one reads as absent."""
    rows = [
        {
            "trial_id": trial_id,
            "moment": probe.when,
            "name": name,
            "value": value if non_finite(value) is None else None,
        }
        for probe in probes
        for name, value in probe.readings.items()
    ]
    if rows:
        connection.execute(INSERT_PROBE, rows)


def environment_id(connection: Connection, facts: Mapping[str, str]) -> int | None:
    """Return the id of a set of facts, stored at its first use."""
    if not facts:
        return None
    document = dict(sorted(facts.items()))
    sha256 = hashlib.sha256(dump_json(document).encode()).hexdigest()
    known = select(Environment.id).where(Environment.sha256 == sha256)
    found = connection.execute(known).scalar_one_or_none()
    if found is not None:
        return found
    connection.execute(
        INSERT[connection.dialect.name](Environment)
        .values(sha256=sha256, facts=document)
        .on_conflict_do_nothing(index_elements=["sha256"])
    )
    return connection.execute(known).scalar_one()
