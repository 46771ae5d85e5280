"""Inserting many rows at once, and rows that may be there already."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, Connection, bindparam, func, insert, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite

from search.store.tables import Base

Statements = Mapping[str, Any]
"""A statement for each database."""

UPSERT: Mapping[str, Callable[..., Any]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}
"""Inserts that may meet a row that is there already."""


def many_rows(model: type[Base], *, overwrite: str | None = None) -> Statements:
    """Make the statements that insert rows with all columns of a table.

    PostgreSQL gets the rows as one JSON document: a message for each row would take longer than
    all that is done with them.

    Args:
        model: The table.
        overwrite: The column to overwrite where a row with the same key is there already.
    """
    columns = model.__table__.columns
    names = [column.name for column in columns]
    document = func.json_populate_recordset(
        literal_column(f"NULL::{model.__tablename__}"), bindparam("rows", type_=JSON())
    ).table_valued(*names)
    if overwrite is None:
        on_postgresql = insert(model).from_select(names, select(document))
        return {"postgresql": on_postgresql, "sqlite": insert(model)}
    key = [column.name for column in columns if column.primary_key]
    statements: dict[str, Any] = {
        "postgresql": postgresql.insert(model).from_select(names, select(document)),
        "sqlite": sqlite.insert(model),
    }
    return {
        dialect: statement.on_conflict_do_update(
            index_elements=key, set_={overwrite: statement.excluded[overwrite]}
        )
        for dialect, statement in statements.items()
    }


def insert_rows(
    connection: Connection, statements: Statements, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows by statements of `many_rows`."""
    if not rows:
        return
    dialect = connection.dialect.name
    given = {"rows": rows} if dialect == "postgresql" else rows
    connection.execute(statements[dialect], given)
