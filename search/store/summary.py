"""The row of `architectures` that stands for all trials of an architecture, and the Pareto front.

The transaction that finishes a trial keeps both, so reading the best of 100,000 trials costs as
little as of ten.
"""

import math
from collections.abc import Sequence

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update
from sqlalchemy.orm import aliased

from search.store.measurements import Cost, Evaluation, Probe
from search.store.tables import Architecture, Study, Trial, TrialBlock
from search.store.types import AnyRow

Point = tuple[float, float, float]

SELECTION, TEST = aliased(Evaluation), aliased(Evaluation)

# Made once: building a statement costs more than SQLite needs to run it.
RESULTS = (
    select(
        Trial.id,
        Trial.phase,
        Trial.recipe,
        Trial.state,
        Trial.code,
        Trial.notation,
        Trial.n_layers,
        SELECTION.value.label("selection"),
        TEST.value.label("test"),
        Cost.params,
        Cost.flops,
        Cost.latency_s,
        Probe.value.label("probe"),
    )
    .outerjoin(
        SELECTION,
        and_(
            SELECTION.trial_id == Trial.id,
            SELECTION.split == "selection",
            SELECTION.metric == bindparam("objective"),
        ),
    )
    .outerjoin(
        TEST,
        and_(
            TEST.trial_id == Trial.id, TEST.split == "test", TEST.metric == bindparam("objective")
        ),
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
INSERT_ARCHITECTURE = insert(Architecture)


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
    study = connection.execute(
        select(Study.objective, Study.direction).where(Study.id == study_id)
    ).one()
    sign = 1.0 if study.direction == "minimize" else -1.0
    trials = completed_trials(connection, study_id, arch_id, study.objective)
    ranked = [trial for trial in trials if trial.selection is not None]
    here = and_(Architecture.study_id == study_id, Architecture.arch_id == arch_id)
    before = connection.execute(select(Architecture).where(here)).one_or_none()
    if not ranked:
        connection.execute(delete(Architecture).where(here))
        if before is not None and before.is_pareto:
            rebuild_front(connection, study_id)
        return
    best = min(ranked, key=lambda trial: (sign * trial.selection, trial.id))
    mean, sd = mean_sd([trial.selection for trial in ranked])
    tests = [trial.test for trial in trials if trial.test is not None]
    test_mean, test_sd = mean_sd(tests)
    values = {
        "code": best.code,
        "notation": best.notation,
        "n_layers": best.n_layers,
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
    if before is None:
        connection.execute(
            INSERT_ARCHITECTURE,
            {
                "study_id": study_id,
                "arch_id": arch_id,
                "uniform_kind": uniform_kind(connection, best.id),
                "is_pareto": False,
                **values,
            },
        )
    else:
        connection.execute(update(Architecture).where(here).values(**values))
    update_front(connection, study_id, arch_id, before)


def completed_trials(
    connection: Connection, study_id: int, arch_id: str, objective: str
) -> Sequence[AnyRow]:
    """Return the completed trials of an architecture that count, with what is summarised."""
    found = connection.execute(
        RESULTS, {"study": study_id, "arch": arch_id, "objective": objective}
    ).all()
    # Were these conditions in the query, SQLite would walk all completed trials of the study.
    return [row for row in found if row.state == "completed" and not row.recipe]


def uniform_kind(connection: Connection, trial_id: int) -> str | None:
    """Return the kind of all layers of a trial, None when they differ."""
    kinds = set(
        connection.execute(select(TrialBlock.kind).where(TrialBlock.trial_id == trial_id)).scalars()
    )
    return kinds.pop() if len(kinds) == 1 else None


def point_of(row: AnyRow) -> Point:
    """Return what the front compares, least is best; an unknown cost is like that of all others.

    Functions of a user are searched without counting parameters: there all are unknown.
    """
    unknown = math.inf
    return row.score, row.flops or unknown, row.params or unknown


def dominates(one: Point, other: Point) -> bool:
    """Whether one is nowhere worse and somewhere better."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def update_front(
    connection: Connection, study_id: int, arch_id: str, before: AnyRow | None
) -> None:
    """Bring the front up to date after one row changed, looking at the front alone if possible."""
    row = connection.execute(
        select(Architecture).where(
            Architecture.study_id == study_id, Architecture.arch_id == arch_id
        )
    ).one()
    point = point_of(row)
    if before is not None and before.is_pareto and point != point_of(before):
        # What it has beaten so far may come back.
        rebuild_front(connection, study_id)
        return
    front = connection.execute(
        select(Architecture).where(
            Architecture.study_id == study_id,
            Architecture.is_pareto,
            Architecture.arch_id != arch_id,
        )
    ).all()
    on_front = not any(dominates(point_of(other), point) for other in front)
    beaten = [other.arch_id for other in front if on_front and dominates(point, point_of(other))]
    mark(connection, study_id, [arch_id], on_front)
    mark(connection, study_id, beaten, False)


def rebuild_front(connection: Connection, study_id: int) -> None:
    """Compute the front of a study from all its rows."""
    rows = connection.execute(
        select(
            Architecture.arch_id,
            Architecture.score,
            Architecture.flops,
            Architecture.params,
            Architecture.is_pareto,
        ).where(Architecture.study_id == study_id)
    ).all()
    front: list[Point] = []
    joins: list[str] = []
    leaves: list[str] = []
    # In this order nothing that comes later can dominate what came before.
    for row in sorted(rows, key=point_of):
        on_front = not any(dominates(point, point_of(row)) for point in front)
        if on_front:
            front.append(point_of(row))
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
