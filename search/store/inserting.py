"""Inserting many rows at once, and rows that may be there already."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, Connection, Executable, bindparam, func, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite

from search.store.tables import Base

UPSERT: Mapping[str, Callable[..., Any]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}
"""Inserts that may meet a row that is there already."""

Rows = Sequence[Mapping[str, Any]]


class WithRows:
    """A statement, and the rows of some tables that are inserted with it.

    PostgreSQL gets all in one statement, the rows of a table as one JSON document: a message for
    each row or table would take longer than all that is done with them. Make it once: building a
    statement costs more than running it.

    Args:
        statement: The statement, or one for each database; none for the rows alone. It does not
            see the rows.
        tables: The tables, by the name that `run` gives their rows. What a row leaves out is
            empty; the rows of a table leave the same out.
        overwrite: The column to overwrite where a row with the same key is there already.
    """

    def __init__(
        self,
        statement: Any,
        tables: Mapping[str, type[Base]],
        *,
        overwrite: str | None = None,
    ) -> None:
        by_dialect = statement if isinstance(statement, Mapping) else {}
        self.on_sqlite: Executable | None = by_dialect.get("sqlite", statement)
        self.inserts = {
            name: overwriting(sqlite.insert(table), table, overwrite)
            for name, table in tables.items()
        }
        documents = [
            overwriting(from_document(table, name), table, overwrite)
            for name, table in tables.items()
        ]
        last = by_dialect.get("postgresql", statement)
        if last is None:
            last = documents.pop()
        self.on_postgresql: Executable = last.add_cte(*(insert.cte() for insert in documents))

    def run(
        self, connection: Connection, values: Mapping[str, Any], rows: Mapping[str, Rows]
    ) -> None:
        """Insert the rows of each table, and run the statement with its values."""
        if connection.dialect.name == "postgresql":
            documents = {name: rows[name] for name in self.inserts}
            connection.execute(self.on_postgresql, {**values, **documents})
            return
        for name, insert in self.inserts.items():
            if rows[name]:
                connection.execute(insert, rows[name])
        if self.on_sqlite is not None:
            connection.execute(self.on_sqlite, values)


def from_document(table: type[Base], name: str) -> Any:
    """Make PostgreSQL's insert of rows that are one JSON document, a parameter of that name."""
    columns = [column.name for column in table.__table__.columns]
    document = func.json_populate_recordset(
        literal_column(f"NULL::{table.__tablename__}"), bindparam(name, type_=JSON())
    ).table_valued(*columns)
    return postgresql.insert(table).from_select(columns, select(document))


def overwriting(insert: Any, table: type[Base], column: str | None) -> Any:
    """Let an insert overwrite a column of rows that are there already, or leave it as it is."""
    if column is None:
        return insert
    key = [found.name for found in table.__table__.columns if found.primary_key]
    return insert.on_conflict_do_update(index_elements=key, set_={column: insert.excluded[column]})
