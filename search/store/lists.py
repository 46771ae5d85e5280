"""One page of a long list: rows of a public view, filtered, sorted and counted by the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, text

from search.errors import InputError
from search.store.measurements import Event
from search.store.reading import flagged, plain_row
from search.store.types import UtcDateTime
from search.store.views import View

NEVER_EMPTY = frozenset({"study", "trial", "number", "phase", "state", "place", "layer", "kind"})
PASSING_EVENTS = ("report", "answer")
"""What happens while trials go on, and changes no answer."""


@dataclass(frozen=True)
class Page:
    """Some rows of a list.

    Attributes:
        rows: Plain JSON values by column.
        total: Rows of the whole list.
    """

    rows: list[dict[str, Any]]
    total: int


def view_page(
    connection: Connection,
    view: View,
    *,
    where: Mapping[str, Any],
    contains: tuple[Sequence[str], str] = ((), ""),
    sort: str | None = None,
    descending: bool = False,
    limit: int,
    offset: int = 0,
) -> Page:
    """Read one page of a view.

    Args:
        connection: Open for reading.
        view: The view.
        where: Column -> the value that it must have, or a sequence of allowed ones.
        contains: Columns and a text; one of them must contain it, in either case of its letters.
        sort: Column that puts the rows in order, empty ones last; the view's order by default,
            which also decides between equals.
        descending: Whether the largest comes first.
        limit: Most rows.
        offset: Rows to skip.

    Raises:
        InputError: A column that the view does not have.
    """
    clauses, values = conditions(view, where, contains)
    condition = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    total = connection.execute(
        text(f"SELECT COUNT(*) FROM {view.name} {condition}"), values
    ).scalar_one()
    times = {name: UtcDateTime() for name in view.columns if name.endswith("_at")}
    found = connection.execute(
        text(
            f"SELECT * FROM {view.name} {condition} ORDER BY {order_of(view, sort, descending)} "
            "LIMIT :limit OFFSET :offset"
        ).columns(**times),
        {**values, "limit": limit, "offset": offset},
    )
    return Page([flagged(plain_row(row)) for row in found], int(total))


def conditions(
    view: View, where: Mapping[str, Any], contains: tuple[Sequence[str], str]
) -> tuple[list[str], dict[str, Any]]:
    """Write the conditions of a page, with the values that they bind."""
    clauses: list[str] = []
    values: dict[str, Any] = {}
    for name, wanted in where.items():
        column = column_of(view, name)
        allowed = [wanted] if isinstance(wanted, str | int | float) else list(wanted)
        bound = {f"{column}_{index}": value for index, value in enumerate(allowed)}
        clauses.append(f"{column} IN ({', '.join(f':{key}' for key in bound)})")
        values |= bound
    columns, part = contains
    if part:
        likes = (f"LOWER({column_of(view, name)}) LIKE :part ESCAPE '!'" for name in columns)
        clauses.append(f"({' OR '.join(likes)})")
        escaped = part.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
        values["part"] = f"%{escaped}%"
    return clauses, values


def order_of(view: View, sort: str | None, descending: bool) -> str:
    """Write the order of a page: a column, empty values last, then the view's own order."""
    if sort is None:
        return view.order
    column = column_of(view, sort)
    # An index gives the order of a plain column alone.
    last = "" if column in NEVER_EMPTY else f"{column} IS NULL, "
    return f"{last}{column} {'DESC' if descending else 'ASC'}, {view.order}"


def column_of(view: View, name: str) -> str:
    """Return a column's name, which is then safe to stand in SQL.

    Raises:
        InputError: The view has no such column; lists those it has.
    """
    if name not in view.columns:
        raise InputError(f"there is no column {name!r}; there are {', '.join(view.columns)}")
    return name


def newest_change(connection: Connection, study_ids: Sequence[int]) -> int:
    """Return the id of the newest event that may change the answer of some studies, 0 if none."""
    statement = (
        select(Event.id)
        .where(Event.study_id.in_(study_ids), Event.kind.not_in(PASSING_EVENTS))
        .order_by(Event.id.desc())
        .limit(1)
    )
    return connection.execute(statement).scalar_one_or_none() or 0
