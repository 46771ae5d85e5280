"""Copying trials, with all that belongs to them, from one store into another under new ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select

from search.rows import FINAL_STATES
from search.store.measurements import (
    Artifact,
    Cost,
    Environment,
    Evaluation,
    MetricPoint,
    Probe,
    Proof,
)
from search.store.results import environment_id
from search.store.tables import Attempt, Base, SpaceRevision, Trial, TrialBlock, Worker
from search.store.types import AnyRow

CHUNK = 200
OF_A_TRIAL: tuple[type[Base], ...] = (
    *(TrialBlock, Attempt, MetricPoint, Evaluation, Cost, Probe, Proof),
    Artifact,
)
OWN_KEYS = frozenset({"id"})
Ids = dict[int, int]


@dataclass(frozen=True)
class Taken:
    """What became of the trials of one study.

    Attributes:
        added: Those copied, as rows of the source.
        duplicates: Those that stand in the target already, as rows of the source.
        left_out: How many have not ended in the source.
        busy_s: Seconds during which one of those copied had a live lease.
    """

    added: Sequence[AnyRow]
    duplicates: Sequence[AnyRow]
    left_out: int
    busy_s: float


class Copying:
    """Copies trials inside a reading transaction of the source and a writing one of the target.

    `trials` maps every trial of the source that is in the target to its id there.
    """

    def __init__(self, source: Connection, target: Connection) -> None:
        self.source = source
        self.target = target
        self.trials: Ids = {}
        self.added: set[int] = set()
        self.workers: Ids = {}
        self.environments: dict[int, int | None] = {}

    def take(self, study_id: int, target_id: int) -> Taken:
        """Copy the ended trials of a study that are not in the target yet."""
        revisions = self.revisions(study_id, target_id)
        known = {
            (row.arch_id, row.training_key, row.seed_index): row.id
            for row in self.target.execute(
                select(Trial.id, Trial.arch_id, Trial.training_key, Trial.seed_index).where(
                    Trial.study_id == target_id
                )
            )
        }
        taken = set(
            self.target.execute(select(Trial.number).where(Trial.study_id == target_id)).scalars()
        )
        found = self.source.execute(
            select(Trial).where(Trial.study_id == study_id).order_by(Trial.number)
        ).all()
        ended = [row for row in found if row.state in FINAL_STATES and row.arch_id is not None]
        fresh, duplicates = [], []
        for row in ended:
            key = (row.arch_id, row.training_key, row.seed_index)
            if key in known:
                self.trials[row.id] = known[key]
                duplicates.append(row)
            else:
                fresh.append(row)
        following = max([*taken, *(row.number for row in fresh)], default=-1) + 1
        for start in range(0, len(fresh), CHUNK):
            chunk = fresh[start : start + CHUNK]
            values = []
            for row in chunk:
                number = row.number
                if number in taken:
                    number, following = following, following + 1
                taken.add(number)
                values.append(
                    columns_of(row, Trial)
                    | {
                        "study_id": target_id,
                        "revision_id": revisions[row.revision_id],
                        "number": number,
                        "worker_id": self.worker(row.worker_id),
                        "environment_id": self.environment(row.environment_id),
                        "reused_from": None,
                    }
                )
            self.insert_trials(chunk, values, target_id)
        return Taken(fresh, duplicates, len(found) - len(ended), self.busy_s(fresh))

    def busy_s(self, rows: Sequence[AnyRow]) -> float:
        """Return the seconds during which an attempt at one of these trials was under way."""
        wanted = {row.id for row in rows}
        study_ids = {row.study_id for row in rows}
        attempts = self.source.execute(
            select(Attempt.trial_id, Attempt.started_at, Attempt.ended_at)
            .where(Attempt.study_id.in_(study_ids))
            .order_by(Attempt.started_at)
        )
        total, until = 0.0, None
        for trial_id, start, end in attempts:
            begin = start if until is None else max(start, until)
            if trial_id in wanted and end is not None and end > begin:
                total += (end - begin).total_seconds()
                until = end
        return total

    def insert_trials(
        self, rows: Sequence[AnyRow], values: list[dict[str, Any]], target_id: int
    ) -> None:
        """Insert trials and all that belongs to them."""
        ids = self.target.execute(
            insert(Trial).returning(Trial.id, sort_by_parameter_order=True), values
        ).scalars()
        new = {row.id: new_id for row, new_id in zip(rows, ids, strict=True)}
        self.trials |= new
        self.added.update(new)
        for table in OF_A_TRIAL:
            columns = table.__table__.c
            lines = []
            for line in self.source.execute(select(table).where(columns.trial_id.in_(new))).all():
                value = columns_of(line, table) | {"trial_id": new[line.trial_id]}
                if table is Attempt:
                    value |= {"study_id": target_id, "worker_id": self.worker(line.worker_id)}
                lines.append(value)
            insert_rows(self.target, table, lines)

    def revisions(self, study_id: int, target_id: int) -> Ids:
        """Return the target's space revision for each of the source's; adds what is missing."""
        of_target = select(SpaceRevision).where(SpaceRevision.study_id == target_id)
        known = list(self.target.execute(of_target).all())
        number = max((row.number for row in known), default=0)
        ids: Ids = {}
        for row in self.source.execute(
            select(SpaceRevision)
            .where(SpaceRevision.study_id == study_id)
            .order_by(SpaceRevision.number)
        ):
            same = [r.id for r in known if (r.plugins, r.choices) == (row.plugins, row.choices)]
            if same:
                ids[row.id] = same[0]
                continue
            number += 1
            values = columns_of(row, SpaceRevision) | {"study_id": target_id, "number": number}
            ids[row.id] = self.target.execute(
                insert(SpaceRevision).values(**values).returning(SpaceRevision.id)
            ).scalar_one()
        return ids

    def worker(self, worker_id: int | None) -> int | None:
        """Return the target's row of a worker, made at its first use."""
        if worker_id is None or worker_id in self.workers:
            return self.workers.get(worker_id or 0)
        row = self.source.execute(select(Worker).where(Worker.id == worker_id)).one()
        found = self.target.execute(
            select(func.min(Worker.id)).where(
                Worker.host == row.host,
                Worker.pid == row.pid,
                Worker.started_at == row.started_at,
            )
        ).scalar_one()
        self.workers[worker_id] = (
            found
            or self.target.execute(
                insert(Worker).values(**columns_of(row, Worker)).returning(Worker.id)
            ).scalar_one()
        )
        return self.workers[worker_id]

    def environment(self, known: int | None) -> int | None:
        """Return the target's row of a set of facts, made at its first use."""
        if known is not None and known not in self.environments:
            facts = self.source.execute(
                select(Environment.facts).where(Environment.id == known)
            ).scalar_one()
            self.environments[known] = environment_id(self.target, facts)
        return None if known is None else self.environments[known]


def insert_rows(
    connection: Connection, table: type[Base], values: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows, if there are any."""
    if values:
        connection.execute(insert(table), list(values))


def columns_of(row: AnyRow, table: type[Base]) -> dict[str, Any]:
    """Return a row's values for another store, without its own key."""
    keyed = OWN_KEYS & {column.name for column in table.__table__.primary_key}
    return {name: value for name, value in row._mapping.items() if name not in keyed}
