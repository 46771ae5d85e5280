"""The row of `architectures` that stands for all trials of an architecture, and the Pareto front.

The transaction that finishes a trial keeps both, so reading the best of 100,000 trials costs as
little as of ten.
"""

import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import aliased

from search.store.measurements import Cost, Evaluation, Probe
from search.store.tables import Architecture, Study, Trial, TrialBlock
from search.store.types import AnyRow

Point = tuple[float, float, float]

SELECTION, TEST = aliased(Evaluation), aliased(Evaluation)

# Made once: building a statement costs more than running it.
UNIFORM_KIND = select(
    case((func.min(TrialBlock.kind) == func.max(TrialBlock.kind), func.min(TrialBlock.kind)))
).where(TrialBlock.trial_id == Trial.id)
RESULTS = (
    select(
        Trial.id,
        Trial.phase,
        Trial.recipe,
        Trial.state,
        Trial.code,
        Trial.notation,
        Trial.n_layers,
        UNIFORM_KIND.scalar_subquery().label("uniform_kind"),
        Study.direction,
        SELECTION.value.label("selection"),
        TEST.value.label("test"),
        Cost.params,
        Cost.flops,
        Cost.latency_s,
        Probe.value.label("probe"),
    )
    .join(Study, Study.id == Trial.study_id)
    .outerjoin(
        SELECTION,
        and_(
            SELECTION.trial_id == Trial.id,
            SELECTION.split == "selection",
            SELECTION.metric == Study.objective,
        ),
    )
    .outerjoin(
        TEST,
        and_(TEST.trial_id == Trial.id, TEST.split == "test", TEST.metric == Study.objective),
    )
    .outerjoin(Cost, Cost.trial_id == Trial.id)
    .outerjoin(
        Probe,
        and_(Probe.trial_id == Trial.id, Probe.moment == "final", Probe.name == "probe"),
    )
    .where(
        Trial.study_id == bindparam("study"),
        Trial.arch_id == bindparam("arch"),
    )
    .order_by(Trial.id)
)
POINTS = select(
    Architecture.arch_id,
    Architecture.score,
    Architecture.flops,
    Architecture.params,
    Architecture.is_pareto,
).where(Architecture.study_id == bindparam("study"))
OTHERS_ON_FRONT = POINTS.where(Architecture.is_pareto, Architecture.arch_id != bindparam("arch"))
ITSELF = POINTS.where(Architecture.arch_id == bindparam("arch"))
FRONT_AND_ITSELF = union_all(OTHERS_ON_FRONT, ITSELF)
HERE = (
    Architecture.study_id == bindparam("study"),
    Architecture.arch_id == bindparam("arch"),
)
INSERT_ARCHITECTURE = insert(Architecture)
UPDATE_ARCHITECTURE = update(Architecture).where(*HERE)
DELETE_ARCHITECTURE = delete(Architecture).where(*HERE)


def mean_sd(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return mean and standard deviation (n - 1), in two passes.

    The one-pass form, E[x^2] - E[x]^2, loses every digit of the small spreads that matter here.
    """
    n = len(values)
    if n == 0:
        return None, None
    mean = math.fsum(values) / n
    if n == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))


def summarise(connection: Connection, study_id: int, arch_id: str) -> None:
    """Bring the row of an architecture up to date, and the front with it."""
    names = {"study": study_id, "arch": arch_id}
    trials = completed_trials(connection, study_id, arch_id)
    ranked = [trial for trial in trials if trial.selection is not None]
    rows = connection.execute(FRONT_AND_ITSELF, names).all()
    before = next((row for row in rows if row.arch_id == arch_id), None)
    if not ranked:
        connection.execute(DELETE_ARCHITECTURE, names)
        if before is not None and before.is_pareto:
            rebuild_front(connection, study_id)
        return
    values = summary_of(trials, ranked)
    point = point_of(values["score"], values["flops"], values["params"])
    front = {row.arch_id: row_point(row) for row in rows if row.arch_id != arch_id}
    values["is_pareto"] = not any(dominates(other, point) for other in front.values())
    if before is None:
        connection.execute(INSERT_ARCHITECTURE, {"study_id": study_id, "arch_id": arch_id} | values)
    else:
        connection.execute(UPDATE_ARCHITECTURE, names | values)
    if before is not None and before.is_pareto and point != row_point(before):
        # What it has beaten so far may come back.
        rebuild_front(connection, study_id)
    elif values["is_pareto"]:
        beaten = [other for other, its_point in front.items() if dominates(point, its_point)]
        mark(connection, study_id, beaten, False)


def summary_of(trials: Sequence[AnyRow], ranked: Sequence[AnyRow]) -> dict[str, Any]:
    """Return the columns that sum an architecture's trials up, of which some are ranked."""
    sign = 1.0 if ranked[0].direction == "minimize" else -1.0
    best = min(ranked, key=lambda trial: (sign * trial.selection, trial.id))
    mean, sd = mean_sd([trial.selection for trial in ranked])
    tests = [trial.test for trial in trials if trial.test is not None]
    test_mean, test_sd = mean_sd(tests)
    return {
        "code": best.code,
        "notation": best.notation,
        "n_layers": best.n_layers,
        "uniform_kind": best.uniform_kind,
        "is_baseline": any(trial.phase == "baseline" for trial in trials),
        "n": len(ranked),
        "mean": mean,
        "sd": sd,
        "score": sign * mean if mean is not None else None,
        "best": best.selection,
        "best_trial_id": best.id,
        "test_n": len(tests),
        "test_mean": test_mean,
        "test_sd": test_sd,
        "params": best.params,
        "flops": best.flops,
        "latency_s": best.latency_s,
        "probe": best.probe,
    }


def completed_trials(connection: Connection, study_id: int, arch_id: str) -> Sequence[AnyRow]:
    """Return the completed trials of an architecture that count, with what is summarised."""
    found = connection.execute(RESULTS, {"study": study_id, "arch": arch_id}).all()
    # Were these conditions in the query, SQLite would walk all completed trials of the study.
    return [row for row in found if row.state == "completed" and not row.recipe]


def point_of(score: float, flops: int | None, params: int | None) -> Point:
    """Return what the front compares, least is best; an unknown cost is like that of all others.

    Functions of a user are searched without counting parameters: there all are unknown.
    """
    unknown = math.inf
    return score, flops or unknown, params or unknown


def row_point(row: AnyRow) -> Point:
    """Return the point of a row of `POINTS`."""
    return point_of(row.score, row.flops, row.params)


def dominates(one: Point, other: Point) -> bool:
    """Whether one is nowhere worse and somewhere better."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def rebuild_front(connection: Connection, study_id: int) -> None:
    """Compute the front of a study from all its rows."""
    rows = connection.execute(POINTS, {"study": study_id}).all()
    front: list[Point] = []
    joins: list[str] = []
    leaves: list[str] = []
    # In this order nothing that comes later can dominate what came before.
    for row in sorted(rows, key=row_point):
        on_front = not any(dominates(point, row_point(row)) for point in front)
        if on_front:
            front.append(row_point(row))
        if on_front != row.is_pareto:
            (joins if on_front else leaves).append(row.arch_id)
    mark(connection, study_id, joins, True)
    mark(connection, study_id, leaves, False)


def mark(connection: Connection, study_id: int, arch_ids: Sequence[str], is_pareto: bool) -> None:
    """Set or clear the mark of some rows."""
    if arch_ids:
        connection.execute(
            update(Architecture)
            .where(Architecture.study_id == study_id, Architecture.arch_id.in_(arch_ids))
            .values(is_pareto=is_pareto)
        )
