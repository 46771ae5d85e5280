"""Pages of a view: filtered, sorted and cut by the database, with bound values alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import text

from search.store.reading import FLAGS, plain_row
from search.store.repo import Store
from search.store.types import UtcDateTime
from search.store.views import View
from service.problems import wrong_fields

NEVER_EMPTY = frozenset({"study", "trial", "number", "phase", "state", "place"})
"""Columns that always have a value: ordered by one of them alone, rows come from an index."""
BEHIND = {"trials_flat": "trials", "leaderboard": "architectures", "pareto": "architectures"}
"""The table that has a row for each row of a view."""


def order_by(view: View, sort: str | None, key: str) -> str:
    """Return the ORDER BY of a sort such as `-selection,number`; `key` makes it total.

    Raises:
        ProblemError: 422, a column that the view does not have.
    """
    terms = []
    for word in (sort or "").split(",") if sort else ():
        column = word.strip().removeprefix("-")
        if column not in view.columns:
            known = ", ".join(view.columns)
            raise wrong_fields([("query.sort", f"no column {column!r}; the columns are {known}")])
        way = "DESC" if word.strip().startswith("-") else "ASC"
        # Without a value comes last, on both databases and both ways.
        last = "" if column in NEVER_EMPTY else f"({column} IS NULL) ASC, "
        terms.append(f"{last}{column} {way}")
    return ", ".join([*terms, f"{key} ASC"])


def turned(order: str) -> str:
    """Return an order from its end."""
    ways = {"ASC": "DESC", "DESC": "ASC"}
    return re.sub(r"\b(ASC|DESC)(?=,|$)", lambda found: ways[found[0]], order)


def counting(view: View, conditions: Mapping[str, str]) -> str:
    """Return the query for the number of rows, which leaves out what only adds columns to them."""
    holds = " AND ".join(
        f"{'s.name' if column == 'study' else f't.{column}'} {condition}"
        for column, condition in conditions.items()
    )
    return (
        f"SELECT COUNT(*) FROM {BEHIND[view.name]} t JOIN studies s ON s.id = t.study_id "
        f"WHERE {holds}"
    )


def page_of(
    store: Store,
    view: View,
    *,
    equal: Mapping[str, Any],
    among: Mapping[str, Sequence[Any] | None],
    sort: str | None,
    key: str,
    page: int,
    page_size: int,
) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of a page and the number of rows of all pages.

    Args:
        store: The store.
        view: A public view.
        equal: Columns that must have a value: `study`, or one of the table behind the view.
        among: Such columns that must have one of some values; None = any.
        sort: Columns with `-` for the greatest first.
        key: Column that makes the order total.
        page: Counts from 1.
        page_size: Rows of a page.
    """
    values = dict(equal)
    conditions = {column: f"= :{column}" for column in equal}
    for column, wanted in among.items():
        if wanted is not None:
            names = [f"{column}_{index}" for index in range(len(wanted))]
            values |= dict(zip(names, wanted, strict=True))
            conditions[column] = f"IN ({', '.join(':' + name for name in names)})"
    where = " AND ".join(f"{column} {holds}" for column, holds in conditions.items())
    order = order_by(view, sort, key)
    first = (page - 1) * page_size
    times = {name: UtcDateTime() for name in view.columns if name.endswith("_at")}
    with store.reading() as connection:
        n_rows = int(connection.execute(text(counting(view, conditions)), values).scalar_one())
        n_shown = max(0, min(page_size, n_rows - first))
        # What lies behind the middle is nearer to the end: fewer rows are passed over from there.
        is_late = first > n_rows - first - n_shown
        before = n_rows - first - n_shown if is_late else first
        found = connection.execute(
            text(
                f"SELECT * FROM {view.name} WHERE {where} "
                f"ORDER BY {turned(order) if is_late else order} LIMIT :rows OFFSET :before"
            ).columns(**times),
            values | {"rows": n_shown, "before": max(0, before)},
        ).all()
    rows = [
        {name: bool(value) if name in FLAGS else value for name, value in plain_row(row).items()}
        for row in (reversed(found) if is_late else found)
    ]
    return rows, n_rows


def thinned(points: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """Return at most `most` points of a curve: both ends, and extremes of equal parts between.

    A narrow peak survives, which it would not among every k-th point.
    """
    if len(points) <= most:
        return list(points)
    inner = points[1:-1]
    parts = max(1, (most - 2) // 2)
    kept = [points[0]]
    for part in range(parts):
        group = inner[part * len(inner) // parts : (part + 1) * len(inner) // parts]
        if group:
            low, high = (extreme(group, key=lambda point: point[1]) for extreme in (min, max))
            kept += sorted({low, high})
    return [*kept, points[-1]]
