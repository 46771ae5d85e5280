"""Studies in the store, as the routes and pages need them."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from search.errors import NothingThereError
from search.rows import StudyRow, StudyState
from search.store.engine import database_time
from search.store.events import record
from search.store.measurements import Event
from search.store.repo import Store
from search.store.studies import as_study_row
from search.store.tables import Attempt, Study, Trial
from service.problems import ProblemError

N_TRIALS = (
    select(func.count())
    .select_from(Trial)
    .where(Trial.study_id == Study.id)
    .correlate(Study)
    .scalar_subquery()
)
SORTS = {"created": Study.id, "name": Study.name, "trials": N_TRIALS}


def find(store: Store, study: str) -> StudyRow:
    """Return a study by name, or by id where no study has that name.

    Raises:
        NothingThereError: With the nearest names.
    """
    try:
        return store.study(study)
    except NothingThereError:
        if study.isascii() and study.isdigit() and len(study) < 16:
            return store.study(int(study))
        raise


def page_of_studies(
    store: Store, q: str | None, state: StudyState | None, sort: str, page: int, page_size: int
) -> tuple[list[StudyRow], int]:
    """Return the studies of a page and the number of those of all pages.

    Args:
        store: The store.
        q: Part of the name.
        state: Only studies in this state.
        sort: `created`, `name` or `trials`; with `-` the last first.
        page: Counts from 1.
        page_size: Studies of a page.
    """
    conditions = []
    if q is not None:
        conditions.append(Study.name.icontains(q, autoescape=True))
    if state is not None:
        conditions.append(Study.state == state)
    column = SORTS[sort.removeprefix("-")]
    by = column.desc() if sort.startswith("-") else column.asc()
    statement = (
        select(Study)
        .where(*conditions)
        .order_by(by, Study.id)
        .limit(page_size)
        .offset((page - 1) * page_size)
    )
    with store.reading() as connection:
        total = connection.execute(select(func.count()).select_from(Study).where(*conditions))
        n_studies = int(total.scalar_one())
        found = connection.execute(statement).all()
        return [as_study_row(connection, row) for row in found], n_studies


def state_counts(store: Store, study_id: int) -> dict[str, int]:
    """Return a study's trials by state."""
    grouped = (
        select(Trial.state, func.count().label("n"))
        .where(Trial.study_id == study_id)
        .group_by(Trial.state)
    )
    with store.reading() as connection:
        return {row.state: row.n for row in connection.execute(grouped)}


def last_event(store: Store, study_id: int) -> int:
    """Return the id of a study's newest event; 0 where nothing happened."""
    with store.reading() as connection:
        newest = select(func.max(Event.id)).where(Event.study_id == study_id)
        return connection.execute(newest).scalar() or 0


def delete_study(store: Store, row: StudyRow) -> None:
    """Delete a study with its trials; what happened in it stays on record.

    Raises:
        ProblemError: 409 while a worker has a trial of it in hand.
    """
    with store.writing(row.id) as connection:
        now = database_time(connection)
        live = (
            select(func.count())
            .select_from(Attempt)
            .where(
                Attempt.study_id == row.id,
                Attempt.ended_at.is_(None),
                Attempt.lease_expires_at > now,
            )
        )
        if connection.execute(live).scalar_one():
            raise ProblemError(409, f"a worker has trials of {row.name!r} in hand; stop it first")
        connection.execute(delete(Study).where(Study.id == row.id))
        record(connection, row.id, "study_deleted", now, name=row.name)
