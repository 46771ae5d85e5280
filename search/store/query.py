"""Read-only SQL for people. The connection refuses to write, whatever the text says.

SQLite: the file is opened with `mode=ro`, an authorizer allows reading and functions alone, a
progress handler ends what takes too long, and SQLite's own limits bound the size of a value.
PostgreSQL: a read-only transaction whose mode can no longer change, the statement inside a cursor
(so it must be a SELECT), under a role that only reads (`search.store.reader_role`), with
`statement_timeout`. Locks that no right protects, and functions that run the text they are given,
are refused by their names.
"""

import math
import re
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine

from search.errors import InputError
from search.store.address import Address
from search.store.engine import BUSY_TIMEOUT_S, translated
from search.store.reader_role import drop_rights, prepare_role

MOST_BYTES = 32 * 2**20
LONGEST_VALUE = 8 * 2**20
STEPS_BETWEEN_CHECKS = 1000

READS = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
REFUSED_FUNCTIONS = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
# Everybody may call these; a name in a text can hide behind unicode escapes alone.
REFUSED_POSTGRESQL = re.compile(
    r"\w*advisory\w*|query_to_xml\w*|ts_stat|ts_rewrite|dblink\w*|u&", re.IGNORECASE
)


@dataclass(frozen=True)
class QueryResult:
    """What a query gave.

    Attributes:
        columns: Their names.
        rows: Plain JSON values; a NaN or an infinity reads as None, times as ISO 8601 text.
        truncated: Whether there were more rows than the limit allows.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by column name, for a DataFrame."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def run_query(
    engine: Engine, address: Address, sql: str, limit: int, timeout_s: float
) -> QueryResult:
    """Run one statement that reads.

    Raises:
        InputError: It is wrong, it writes, or it takes too long.
        StoreError: The database cannot be read.
    """
    statement = sql.strip().rstrip(";").strip()
    if not statement:
        raise InputError("the query is empty; write one SELECT, such as: SELECT * FROM leaderboard")
    if "\0" in statement:
        raise InputError("the query holds a null character")
    if limit < 1 or timeout_s <= 0:
        raise InputError("a query needs a limit of at least 1 row and a time limit above 0 s")
    if address.path is not None:
        return query_sqlite(address, statement, limit, timeout_s)
    return query_postgresql(engine, address, statement, limit, timeout_s)


def authorize(
    action: int, first: str | None, second: str | None, database: str | None, source: str | None
) -> int:
    """Allow reading and functions; deny all else, such as ATTACH, PRAGMA or any change."""
    if action not in READS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in REFUSED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def open_read_only(address: Address) -> sqlite3.Connection:
    """Open an SQLite file for reading alone."""
    path = quote(str(address.url.database))
    connection = sqlite3.connect(
        f"file:{path}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
    )
    connection.execute("PRAGMA query_only = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for table in ("json_each", "json_tree"):
        # Their first use declares a table, which the authorizer would refuse.
        connection.execute(f"SELECT 1 FROM {table}('[]')")
    connection.set_authorizer(authorize)
    return connection


def query_sqlite(address: Address, statement: str, limit: int, timeout_s: float) -> QueryResult:
    """Run a statement on SQLite."""
    deadline = time.monotonic() + timeout_s
    try:
        connection = open_read_only(address)
    except sqlite3.Error as error:
        raise InputError(f"{address.label}: cannot be read: {error}") from error
    try:
        connection.set_progress_handler(
            lambda: int(time.monotonic() > deadline), STEPS_BETWEEN_CHECKS
        )
        cursor = connection.execute(statement)
        if cursor.description is None:
            raise InputError("the query gives no rows; write one SELECT")
        columns = tuple(column[0] for column in cursor.description)
        return collected(columns, cursor, limit)
    except (sqlite3.Error, sqlite3.Warning) as error:
        if time.monotonic() > deadline and "interrupted" in str(error):
            raise too_slow(timeout_s) from None
        raise InputError(f"query: {refusal(str(error))}") from error
    finally:
        connection.close()


def query_postgresql(
    engine: Engine, address: Address, statement: str, limit: int, timeout_s: float
) -> QueryResult:
    """Run a statement on PostgreSQL."""
    import psycopg

    if found := REFUSED_POSTGRESQL.search(statement):
        raise InputError(f"query: {found[0]!r} is refused; only reading is allowed")
    with translated(address), engine.connect() as outer:
        raw: Any = outer.connection.driver_connection
        raw.autocommit = True  # we begin and end the transaction
        try:
            prepare_role(engine, raw)
            with raw.cursor() as cursor:
                cursor.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                cursor.execute(f"SET LOCAL statement_timeout = {math.ceil(timeout_s * 1000)}")
                drop_rights(cursor)
                # After a first query the mode of a transaction cannot change.
                cursor.execute("SELECT 1")
                # The extended protocol takes one statement, the cursor only one that reads.
                cursor.execute(
                    f"DECLARE search_query NO SCROLL CURSOR FOR {statement}".encode(),
                    prepare=True,
                )
                cursor.execute(f"FETCH {limit + 1} FROM search_query")
                columns = tuple(column.name for column in cursor.description or ())
                return collected(columns, cursor, limit)
        except psycopg.errors.QueryCanceled:
            raise too_slow(timeout_s) from None
        except (psycopg.errors.DatabaseError, UnicodeError) as error:
            if isinstance(error, psycopg.OperationalError) and raw.closed:
                raise
            raise InputError(f"query: {refusal(address.scrub(str(error)))}") from error
        finally:
            if not raw.closed:
                raw.rollback()
            outer.invalidate()


def collected(columns: tuple[str, ...], rows: Iterable[Any], limit: int) -> QueryResult:
    """Take rows up to the limits of number and size."""
    taken: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        if len(taken) == limit or size > MOST_BYTES:
            return QueryResult(columns, taken, True)
        taken.append(tuple(json_value(value) for value in row))
    return QueryResult(columns, taken, False)


def json_value(value: Any) -> Any:
    """Return a value that strict JSON can hold."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        utc = value.astimezone(UTC) if value.tzinfo is not None else value
        return utc.isoformat(sep=" ", timespec="microseconds")  # as SQLite keeps it
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return str(value)


def too_slow(timeout_s: float) -> InputError:
    """The error of a query that ran out of time."""
    return InputError(
        f"the query took longer than {timeout_s:g} s and was ended; narrow it with WHERE",
        command="or more time with --timeout",
    )


def refusal(message: str) -> str:
    """Say in one line why a database refused a query."""
    line = message.strip().splitlines()[0] if message.strip() else "refused"
    if "not authorized" in line or "prohibited" in line or "readonly database" in line:
        return "only reading is allowed; write one SELECT"
    if "one statement at a time" in line or "multiple commands" in line:
        return "one statement at a time; write one SELECT"
    return line
