"""Studies: a name bound to its spec, its space revisions, its state and its answer."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from mixers.spec import canonical_json
from search.errors import InputError, NothingThereError
from search.rows import StudyRow, StudyState, VerdictRow
from search.store.engine import database_time
from search.store.events import record
from search.store.finite import require_finite
from search.store.leases import last_ended
from search.store.measurements import Look, StudyVerdict
from search.store.tables import Attempt, DerivedStudy, SpaceRevision, Study, Trial
from search.store.types import AnyRow

if TYPE_CHECKING:
    from search.spec.study import StudySpec

Plugins = Mapping[str, tuple[str, str]]
ABSENT = object()
SHOWN_DIFFERENCES = 5
LAST_EXPIRY = select(func.max(Attempt.lease_expires_at)).where(
    Attempt.study_id == bindparam("study"), Attempt.ended_at.is_(None)
)


def ensure_study(
    connection: Connection,
    name: str,
    spec: "StudySpec",
    plugins: Plugins,
    *,
    derived_from: tuple[int, str] | None,
) -> StudyRow:
    """Create a study, or continue the one of that name.

    Raises:
        InputError: The name is blank, or bound to another spec; names the paths that differ.
    """
    if not name.strip() or not name.isprintable():
        raise InputError(
            f"the name {name!r} of a study could not be read in a list; give it a visible one, "
            "without line ends"
        )
    document = json.loads(canonical_json(spec))
    now = database_time(connection)
    found = connection.execute(select(Study).where(Study.name == name)).one_or_none()
    if found is None:
        study_id = connection.execute(
            insert(Study)
            .values(
                name=name,
                spec=document,
                objective=spec.objective,
                direction=spec.direction,
                n_layers=spec.encoder.n_layers,
                reference_kind=spec.baselines.reference.split("(")[0].strip(),
                state="running",
                attrs={},
                created_at=now,
            )
            .returning(Study.id)
        ).scalar_one()
        if derived_from is not None:
            base_id, purpose = derived_from
            connection.execute(
                insert(DerivedStudy).values(study_id=study_id, base_id=base_id, purpose=purpose)
            )
    else:
        study_id = found.id
        if found.spec != document:
            kind = type(spec)
            refuse_other_spec(name, spelled_out(found.spec, kind), spelled_out(document, kind))
    new_revision = ensure_revision(connection, study_id, document, plugins)
    if found is None:
        record(connection, study_id, "study_created", now, name=name)
    elif new_revision:
        record(connection, study_id, "space_revised", now, plugins=dict(plugins))
    return study_row(connection, study_id)


def refuse_other_spec(name: str, stored: Any, wanted: Any) -> None:
    """Refuse a spec that is not the one its name is bound to.

    Raises:
        InputError: With up to five paths that differ, and both values.
    """
    lines = list(differences(stored, wanted))
    if lines:
        shown = "; ".join(lines[:SHOWN_DIFFERENCES])
        more = len(lines) - SHOWN_DIFFERENCES
        raise InputError(
            f"study {name!r} exists with another spec ({shown}"
            + (f"; and {more} more" if more > 0 else "")
            + "); give the changed one another name",
            command="--name NEW",
        )


def spelled_out(document: Any, kind: "type[StudySpec]") -> Any:
    """Return a stored spec with every default in it; as it is where it cannot be read here."""
    try:
        return json.loads(kind.model_validate(document).model_dump_json())
    except ValueError:
        return document


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield "path: old -> new" for every leaf in which two JSON documents differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(
                old.get(key, ABSENT), new.get(key, ABSENT), f"{path}.{key}" if path else key
            )
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            yield from differences(
                old[index] if index < len(old) else ABSENT,
                new[index] if index < len(new) else ABSENT,
                f"{path}.{index}",
            )
    elif old is ABSENT or new is ABSENT or old != new:
        yield f"{path}: {shown_value(old)} -> {shown_value(new)}"


def shown_value(value: Any) -> str:
    """Write a value of a difference."""
    return "(absent)" if value is ABSENT else json.dumps(value, ensure_ascii=False)


def ensure_revision(
    connection: Connection, study_id: int, document: Mapping[str, Any], plugins: Plugins
) -> bool:
    """Add a space revision where the newest has other plugin versions; says whether it did."""
    wanted = {kind: list(owner) for kind, owner in plugins.items()}
    newest = newest_revision(connection, study_id)
    if newest is not None and newest.plugins == wanted:
        return False
    connection.execute(
        insert(SpaceRevision).values(
            study_id=study_id,
            number=newest.number + 1 if newest is not None else 1,
            choices=document["space"]["choices"],
            plugins=wanted,
            created_at=database_time(connection),
        )
    )
    return True


def newest_revision(connection: Connection, study_id: int) -> AnyRow | None:
    """Return the space revision that new trials belong to."""
    return connection.execute(
        select(SpaceRevision)
        .where(SpaceRevision.study_id == study_id)
        .order_by(SpaceRevision.number.desc())
        .limit(1)
    ).first()


def study_row(connection: Connection, study_id: int) -> StudyRow:
    """Read one study.

    Raises:
        NothingThereError: There is none with that id.
    """
    found = connection.execute(select(Study).where(Study.id == study_id)).one_or_none()
    if found is None:
        raise NothingThereError(f"there is no study with id {study_id}")
    return as_study_row(connection, found)


def as_study_row(connection: Connection, found: AnyRow) -> StudyRow:
    """Complete a row of `studies` by its revision and its counts."""
    revision = newest_revision(connection, found.id)
    base, purpose = origin(connection, found.id)
    counted = connection.execute(
        select(Trial.state, func.count().label("n"))
        .where(Trial.study_id == found.id)
        .group_by(Trial.state)
    )
    states: dict[str, int] = {row.state: row.n for row in counted}
    live = connection.execute(
        select(func.count()).where(Attempt.study_id == found.id, Attempt.ended_at.is_(None))
    ).scalar_one()
    return StudyRow(
        id=found.id,
        name=found.name,
        spec=found.spec,
        objective=found.objective,
        direction=found.direction,
        state=found.state,
        reason=found.reason,
        space_revision=revision.number if revision is not None else 0,
        plugins={k: tuple(v) for k, v in revision.plugins.items()} if revision is not None else {},
        attrs=found.attrs,
        budget=found.budget,
        created_at=found.created_at,
        n_trials=sum(states.values()),
        n_completed=states.get("completed", 0),
        n_running=live,
        busy_s=busy_seconds(connection, found),
        base=base,
        purpose=purpose,
    )


def origin(connection: Connection, study_id: int) -> tuple[str | None, str | None]:
    """Return the name of the study that this one was derived from, and what for."""
    found = connection.execute(
        select(Study.name, DerivedStudy.purpose)
        .join(DerivedStudy, DerivedStudy.base_id == Study.id)
        .where(DerivedStudy.study_id == study_id)
    ).one_or_none()
    return (None, None) if found is None else (found.name, found.purpose)


def find_row(connection: Connection, study: str | int) -> AnyRow:
    """Return the row of `studies` of a study named by name or id; raises as `find_study` does."""
    study_id = find_study(connection, study)
    return connection.execute(select(Study).where(Study.id == study_id)).one()


def busy_seconds(connection: Connection, study: AnyRow) -> float:
    """Return the seconds during which a study had a live lease, up to now.

    The time after the last lease ran out does not count, whether it was taken back already or not.
    """
    expires = connection.execute(LAST_EXPIRY, {"study": study.id}).scalar()
    return busy_until(connection, study, database_time(connection), expires)


def busy_until(
    connection: Connection, study: AnyRow, now: datetime, last_expiry: datetime | None
) -> float:
    """Return what `busy_seconds` does at a time, given when the last of the live leases ends."""
    busy = float(study.busy_s)
    if study.busy_since is None:
        return busy
    until = last_expiry or study.busy_since
    if until < now:
        until = max(until, last_ended(connection, study.id) or until)
    since: datetime = study.busy_since
    return busy + max(0.0, (min(now, until) - since).total_seconds())


def find_study(connection: Connection, study: str | int) -> int:
    """Return the id of a study named by name or id.

    Raises:
        NothingThereError: With the nearest names.
    """
    column = Study.id if isinstance(study, int) else Study.name
    found = connection.execute(select(Study.id).where(column == study)).scalar_one_or_none()
    if found is not None:
        return found
    names = list(connection.execute(select(Study.name).order_by(Study.id)).scalars())
    near = difflib.get_close_matches(str(study), names, n=3, cutoff=0.5)
    if near:
        raise NothingThereError(f"there is no study {study!r}; did you mean {', '.join(near)}?")
    raise NothingThereError(
        f"there is no study {study!r}; the list of studies names all", command="search ls"
    )


def all_studies(connection: Connection) -> list[StudyRow]:
    """Read every study, oldest first."""
    found = connection.execute(select(Study).order_by(Study.id)).all()
    return [as_study_row(connection, row) for row in found]


def set_study_state(
    connection: Connection, study_id: int, state: StudyState, reason: str | None
) -> None:
    """Set a study's state and why; `paused` and `stopped` keep it from handing out trials."""
    now = database_time(connection)
    changed = connection.execute(
        update(Study).where(Study.id == study_id).values(state=state, reason=reason)
    )
    if changed.rowcount == 0:
        raise NothingThereError(f"there is no study with id {study_id}")
    record(connection, study_id, "study_state", now, state=state, reason=reason)


def ask_budget(connection: Connection, study_id: int, budget: str) -> None:
    """Note a budget; another one than before sets an ended study running again."""
    study = connection.execute(select(Study).where(Study.id == study_id)).one_or_none()
    if study is None:
        raise NothingThereError(f"there is no study with id {study_id}")
    if study.budget == budget:
        return
    connection.execute(update(Study).where(Study.id == study_id).values(budget=budget))
    record(connection, study_id, "budget", database_time(connection), budget=budget)
    if study.state in ("completed", "failed"):
        set_study_state(connection, study_id, "running", None)


def looks(connection: Connection, study_id: int) -> tuple[int, ...]:
    """Return how many confirmation trials had ended at each look."""
    counts = select(Look.confirm_trials).where(Look.study_id == study_id).order_by(Look.number)
    return tuple(connection.execute(counts).scalars())


def record_look(connection: Connection, study_id: int, confirm_trials: int) -> int:
    """Count a look, unless no confirmation trial was added since the last one."""
    before = looks(connection, study_id)
    if before and confirm_trials <= before[-1]:
        return len(before)
    connection.execute(
        insert(Look).values(
            study_id=study_id,
            number=len(before) + 1,
            confirm_trials=confirm_trials,
            made_at=database_time(connection),
        )
    )
    return len(before) + 1


def save_verdicts(
    connection: Connection, study_id: int, rows: Sequence[VerdictRow | Mapping[str, Any]]
) -> None:
    """Replace a study's verdicts by those of a new answer."""
    now = database_time(connection)
    lines = [row if isinstance(row, VerdictRow) else VerdictRow(**row) for row in rows]
    for line in lines:
        numbers = [line.estimate, line.low, line.high, line.p_value]
        require_finite(numbers, f"verdict {line.contrast!r}")
    connection.execute(delete(StudyVerdict).where(StudyVerdict.study_id == study_id))
    if lines:
        connection.execute(
            insert(StudyVerdict),
            [
                {"study_id": study_id, "place": place, "made_at": now, **vars(line)}
                for place, line in enumerate(lines)
            ],
        )
    record(connection, study_id, "answer", now, n=len(lines))
