"""Reading trials: as rows for the answers and strategies, as whole documents for people."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, select, text
from sqlalchemy.orm import aliased

from search.errors import NothingThereError
from search.rows import DocumentSums, Latency, TrialRow
from search.store.measurements import (
    Artifact,
    Cost,
    Environment,
    Evaluation,
    Event,
    MetricPoint,
    Probe,
    Proof,
)
from search.store.tables import Attempt, Base, SpaceRevision, Study, Trial, TrialBlock, Worker
from search.store.types import AnyRow, UtcDateTime
from search.store.views import TRIALS_FLAT, View

FLAGS = ("is_baseline", "is_pareto")


def trial_rows(
    connection: Connection,
    study_id: int,
    *,
    curves: bool = True,
    documents: bool = False,
    only: Collection[int] | None = None,
) -> list[TrialRow]:
    """Return every trial of a study by number, or some, in a few queries however many there are."""
    wanted = [Trial.study_id == study_id]
    if only is not None:
        wanted.append(Trial.id.in_(only))
    study = connection.execute(
        select(Study.name, Study.objective, Study.spec).where(Study.id == study_id)
    ).one()
    final, initial, newest = aliased(Probe), aliased(Probe), aliased(Attempt)
    found = connection.execute(
        select(
            Trial.id,
            Trial.number,
            Trial.phase,
            Trial.role,
            Trial.state,
            Trial.reason,
            Trial.arch_id,
            Trial.code,
            Trial.notation,
            Trial.mixers,
            Trial.n_layers,
            Trial.seed,
            Trial.seed_index,
            Trial.recipe,
            Trial.route,
            Trial.sampler_params,
            Trial.sampler_attrs,
            Trial.steps,
            Trial.seconds,
            Trial.reused_from,
            Trial.error,
            Cost.params,
            Cost.flops,
            Cost.step_s,
            Cost.latency_s,
            Cost.latency_s_low,
            Cost.latency_s_high,
            Cost.latency_n,
            Cost.latency_batch_size,
            Cost.seq_len,
            Cost.device,
            Cost.dtype,
            Cost.peak_memory_bytes,
            final.value.label("probe"),
            initial.value.label("probe_init"),
            Worker.name.label("worker"),
            newest.cause,
        )
        .outerjoin(Cost, Cost.trial_id == Trial.id)
        .outerjoin(
            final,
            and_(final.trial_id == Trial.id, final.moment == "final", final.name == "probe"),
        )
        .outerjoin(
            initial,
            and_(initial.trial_id == Trial.id, initial.moment == "init", initial.name == "probe"),
        )
        .outerjoin(Worker, Worker.id == Trial.worker_id)
        .outerjoin(newest, and_(newest.trial_id == Trial.id, newest.number == Trial.attempt))
        .where(*wanted)
        .order_by(Trial.number)
    ).all()
    metrics = split_metrics(connection, wanted)
    at_rungs = rung_metrics(connection, study.spec.get("rungs", ()), wanted)
    points = curve_points(connection, study_id, study.objective) if curves else {}
    sums = document_sums(connection, study_id, study.objective) if documents else {}
    return [
        TrialRow(
            id=row.id,
            study=study.name,
            number=row.number,
            phase=row.phase,
            role=row.role,
            state=row.state,
            reason=row.reason,
            arch_id=row.arch_id,
            code=row.code or "",
            notation=row.notation or "",
            mixers=tuple(row.mixers or ()),
            n_layers=row.n_layers or 0,
            seed=row.seed or 0,
            seed_index=row.seed_index or 0,
            recipe=row.recipe,
            route=row.route,
            selection=metrics.get((row.id, "selection"), {}),
            test=metrics.get((row.id, "test"), {}),
            documents=sums.get(row.id, {}),
            params=row.params,
            flops=row.flops,
            step_s=row.step_s,
            latency_s=row.latency_s,
            latency=latency_of(row),
            peak_memory=row.peak_memory_bytes,
            probe=row.probe,
            probe_init=row.probe_init,
            steps=row.steps,
            seconds=row.seconds,
            reused_from=row.reused_from,
            curve=tuple(points.get(row.id, ())),
            rungs=dict(at_rungs.get(row.id, {})),
            params_json=row.sampler_params,
            sampler_attrs=row.sampler_attrs,
            worker=row.worker,
            error=row.error,
            cause=row.cause if row.state == "failed" else None,
        )
        for row in found
    ]


def latency_of(row: AnyRow) -> Latency | None:
    """Return the timed forward pass of a trial."""
    if row.latency_s is None:
        return None
    return Latency(
        median=row.latency_s,
        low=row.latency_s_low,
        high=row.latency_s_high,
        n=row.latency_n,
        batch_size=row.latency_batch_size,
        seq_len=row.seq_len,
        device=row.device,
        dtype=row.dtype,
    )


def split_metrics(
    connection: Connection, wanted: Sequence[ColumnElement[bool]]
) -> Mapping[tuple[int, str], dict[str, float]]:
    """Return the final metrics of the wanted trials by trial and split."""
    result: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for trial_id, split, metric, value in connection.execute(
        select(Evaluation.trial_id, Evaluation.split, Evaluation.metric, Evaluation.value)
        .join(Trial, Trial.id == Evaluation.trial_id)
        .where(*wanted)
    ):
        result[trial_id, split][metric] = value
    return result


def rung_metrics(
    connection: Connection, rungs: Sequence[int], wanted: Sequence[ColumnElement[bool]]
) -> Mapping[int, dict[int, dict[str, float]]]:
    """Return metrics on selection at the rungs, by trial and rung; no query without rungs."""
    result: dict[int, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    if not rungs:
        return result
    for trial_id, step, metric, value in connection.execute(
        select(MetricPoint.trial_id, MetricPoint.step, MetricPoint.metric, MetricPoint.value)
        .join(Trial, Trial.id == MetricPoint.trial_id)
        .where(*wanted, MetricPoint.split == "selection", MetricPoint.step.in_(rungs))
    ):
        result[trial_id][step][metric] = value
    return result


def document_sums(
    connection: Connection, study_id: int, objective: str
) -> Mapping[int, dict[str, DocumentSums]]:
    """Return the objective's sums by document, by trial and split."""
    result: dict[int, dict[str, DocumentSums]] = defaultdict(dict)
    for trial_id, split, found in connection.execute(
        select(Evaluation.trial_id, Evaluation.split, Evaluation.by_document)
        .join(Trial, Trial.id == Evaluation.trial_id)
        .where(
            Trial.study_id == study_id,
            Evaluation.metric == objective,
            Evaluation.by_document.is_not(None),
        )
    ):
        result[trial_id][split] = DocumentSums(tuple(found["n"]), tuple(found["sums"]))
    return result


def curve_points(
    connection: Connection, study_id: int, objective: str
) -> Mapping[int, list[tuple[int, float]]]:
    """Return (step, objective on selection) by trial."""
    result: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for trial_id, step, value in connection.execute(
        select(MetricPoint.trial_id, MetricPoint.step, MetricPoint.value)
        .join(Trial, Trial.id == MetricPoint.trial_id)
        .where(
            Trial.study_id == study_id,
            MetricPoint.split == "selection",
            MetricPoint.metric == objective,
        )
        .order_by(MetricPoint.trial_id, MetricPoint.step)
    ):
        result[trial_id].append((step, value))
    return result


def trial_document(connection: Connection, trial_id: int) -> dict[str, Any]:
    """Return all that is known about a trial, as plain JSON values.

    Raises:
        NothingThereError: There is no such trial.
    """
    flat = view_rows(connection, TRIALS_FLAT, "trial = :trial", trial=trial_id)
    if not flat:
        raise NothingThereError(f"there is no trial with id {trial_id}")
    trial = one(connection, Trial, Trial.id == trial_id)
    document = flat[0] | {
        name: trial[name]
        for name in (
            *("spec", "route", "training_key", "sampler_params", "sampler_attrs", "attempt"),
        )
    }
    document["plugins"] = one(connection, SpaceRevision, SpaceRevision.id == trial["revision_id"])[
        "plugins"
    ]
    for name, model in (("blocks", TrialBlock), ("attempts", Attempt), ("artifacts", Artifact)):
        document[name] = many(connection, model, trial_id)
    document["curves"] = curves_document(connection, trial_id)
    document["evaluations"] = defaultdict(dict)
    for row in many(connection, Evaluation, trial_id):
        document["evaluations"][row["split"]][row["metric"]] = row["value"]
    document["probes"] = defaultdict(dict)
    for row in many(connection, Probe, trial_id):
        document["probes"][row["moment"]][row["name"]] = row["value"]
    document["evaluations"] = dict(document["evaluations"])
    document["probes"] = dict(document["probes"])
    document["costs"] = next(iter(many(connection, Cost, trial_id)), None)
    document["proof"] = next(iter(many(connection, Proof, trial_id)), None)
    environment = one(connection, Environment, Environment.id == trial["environment_id"])
    document["environment"] = environment.get("facts", {})
    return document


def curves_document(connection: Connection, trial_id: int) -> dict[str, list[list[float]]]:
    """Return "split.metric" -> [[step, value], ...]."""
    curves: dict[str, list[list[float]]] = defaultdict(list)
    for row in many(connection, MetricPoint, trial_id):
        curves[f"{row['split']}.{row['metric']}"].append([row["step"], row["value"]])
    return dict(curves)


def one(connection: Connection, model: type[Base], condition: Any) -> dict[str, Any]:
    """Return one row as a plain document, empty when there is none."""
    found = connection.execute(select(model).where(condition)).one_or_none()
    return plain_row(found) if found is not None else {}


def many(connection: Connection, model: type[Base], trial_id: int) -> list[dict[str, Any]]:
    """Return a trial's rows of a table by key, as plain documents without the trial's id."""
    columns = model.__table__.c
    key = list(model.__table__.primary_key)
    found = connection.execute(
        select(model).where(columns["trial_id"] == trial_id).order_by(*key)
    ).all()
    return [
        {name: value for name, value in plain_row(row).items() if name != "trial_id"}
        for row in found
    ]


def leaderboard(connection: Connection, study: str, limit: int | None) -> list[dict[str, Any]]:
    """Return the leaderboard of a study, best first, with the mark of the Pareto front."""
    sql = "SELECT * FROM pareto WHERE study = :study ORDER BY place"
    if limit is not None:
        sql += f" LIMIT {int(limit)}"
    return [flagged(plain_row(row)) for row in connection.execute(text(sql), {"study": study})]


def flagged(row: dict[str, Any]) -> dict[str, Any]:
    """Turn SQLite's 0 and 1 into what they mean."""
    return {name: bool(value) if name in FLAGS else value for name, value in row.items()}


def view_rows(
    connection: Connection, view: View, condition: str = "", **values: Any
) -> list[dict[str, Any]]:
    """Return rows of one of our views, in its order."""
    times = {name: UtcDateTime() for name in view.columns if name.endswith("_at")}
    sql = f"SELECT * FROM {view.name} {condition and 'WHERE ' + condition} ORDER BY {view.order}"
    found = connection.execute(text(sql).columns(**times), values).all()
    return [flagged(plain_row(row)) for row in found]


def events_after(
    connection: Connection, after_id: int, study_id: int | None, limit: int
) -> list[dict[str, Any]]:
    """Return events by rising id."""
    statement = select(Event).where(Event.id > after_id).order_by(Event.id).limit(limit)
    if study_id is not None:
        statement = statement.where(Event.study_id == study_id)
    return [plain_row(row) for row in connection.execute(statement).all()]


def plain_row(row: AnyRow) -> dict[str, Any]:
    """Return a row as JSON values by column."""
    return {name: plain(value) for name, value in row._mapping.items()}


def plain(value: Any) -> Any:
    """Return a value of either database as a JSON value: times as ISO 8601 text, no NaN."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None  # no JSON; the store writes none, another program may
    return value
