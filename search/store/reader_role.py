"""The role under which people's SQL runs on PostgreSQL: it reads the store's tables, no more.

A superuser may read password hashes and files of the server, so a store that is opened as one makes
this role on its first query. Other users go on as the role where they are members of it, else as
`pg_read_all_data` where they are members of that, else with their own rights.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakSet

from sqlalchemy import Engine

from search.errors import InputError

ROLE = "mixsearch_reader"
PREPARED: WeakSet[Engine] = WeakSet()
LOCK = 0x6D6978
UNREADABLE = """
    SELECT count(*) FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v')
    AND NOT has_table_privilege(%s, oid, 'SELECT')
"""


def prepare_role(engine: Engine, raw: Any) -> None:
    """Make the role and let it read, once per engine; only a superuser does.

    Args:
        engine: Whose connection it is.
        raw: The driver's connection, in autocommit.

    Raises:
        psycopg.Error: The server refuses, as a standby does.
    """
    if engine in PREPARED:
        return
    with raw.cursor() as cursor:
        if is_superuser(cursor):
            make_role(cursor)
            let_read(raw, cursor)
    PREPARED.add(engine)


def is_superuser(cursor: Any) -> bool:
    """Whether a connection may do everything."""
    return bool(cursor.execute("SHOW is_superuser").fetchone() == ("on",))


def make_role(cursor: Any) -> None:
    """Make the role unless it is there; another database of the server may do so meanwhile."""
    import psycopg

    if cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() is None:
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            cursor.execute(f"CREATE ROLE {ROLE} NOLOGIN")


def let_read(raw: Any, cursor: Any) -> None:
    """Let the role read every table and view of the store."""
    from psycopg.sql import SQL, Identifier

    with raw.transaction():
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        if cursor.execute(UNREADABLE, (ROLE,)).fetchone() == (0,):
            return
        (schema,) = cursor.execute("SELECT current_schema()").fetchone()
        names = {"schema": Identifier(schema), "role": Identifier(ROLE)}
        for grant in ("USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA"):
            cursor.execute(SQL(f"GRANT {grant} {{schema}} TO {{role}}").format(**names))


def drop_rights(cursor: Any) -> None:
    """Go on with the least rights that the server allows, inside a transaction.

    Raises:
        InputError: The connection is a superuser's and cannot lay that down.
    """
    import psycopg

    for role in (ROLE,) if is_superuser(cursor) else (ROLE, "pg_read_all_data"):
        cursor.execute("SAVEPOINT before_role")
        try:
            cursor.execute(f"SET LOCAL ROLE {role}")
            return
        except psycopg.errors.Error:
            cursor.execute("ROLLBACK TO SAVEPOINT before_role")
    if is_superuser(cursor):
        raise InputError(
            f"the store is opened as a superuser, and its server lacks the role {ROLE}; query as a "
            f"user with fewer rights, or make the role: CREATE ROLE {ROLE} NOLOGIN"
        )
