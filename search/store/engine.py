"""Engines for both databases, their clock and their locks, and errors in one line."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Integer,
    bindparam,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    InvalidatePoolError,
    NoSuchModuleError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from search.errors import StoreAwayError, StoreError
from search.store.address import ANOTHER, Address
from search.store.bursts import BurstPool
from search.store.types import UtcDateTime

BUSY_TIMEOUT_S = 60.0
LEAST_ROOM_BYTES = 64 * 1024
SILENT_S = 30
"""How long a server may say nothing at all, not even that it lives, before it counts as away."""
LIVELINESS = {
    "connect_timeout": 10,
    "keepalives_idle": SILENT_S // 3,
    "keepalives_interval": SILENT_S // 6,
    "keepalives_count": 4,
    "tcp_user_timeout": 1000 * SILENT_S,
}
"""Without these who asks a machine that lost its power or its network waits for hours."""
IDLE_WRITER_S = 60
"""A writer whose machine went away in mid-transaction keeps its locks from others no longer."""
NO_RIGHTS = "42501"  # PostgreSQL's codes: of a missing permission,
IDLE_TOO_LONG = "25P03"  # and of a session that it ended for want of a next statement
WRITE = "search_write"
LOCK = "search_lock"

# Advisory locks of PostgreSQL are numbers: a first one of ours, a second one for the purpose.
LOCK_SPACE = 0x6D69786D
EVENTS_LOCK = -1
SCHEMA_LOCK = -2

CLOCKS = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')",
    "postgresql": "clock_timestamp()",
}


class DatabaseTime(FunctionElement[datetime]):
    """The database's own time when a row is read, by which leases run out."""

    type = UtcDateTime()
    inherit_cache = True


@compiles(DatabaseTime)
def compile_time(element: DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:
    """Write the time as the database has it."""
    return CLOCKS[compiler.dialect.name]


class TimeAfter(FunctionElement[datetime]):
    """The database's own time after a number of seconds."""

    type = UtcDateTime()
    inherit_cache = True


AFTER = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f+00:00', {now}, {seconds} || ' seconds')",
    "postgresql": "{now} + make_interval(secs => {seconds})",
}


@compiles(TimeAfter)
def compile_time_after(element: TimeAfter, compiler: SQLCompiler, **options: Any) -> str:
    """Write the time as the database counts it."""
    name = compiler.dialect.name
    seconds = compiler.process(element.clauses, **options)
    return AFTER[name].format(now=CLOCKS[name], seconds=seconds)


# Made once, as all statements that a trial needs: building one costs more than running it.
SELECT_TIME = select(DatabaseTime())
TAKE_LOCK = select(func.pg_advisory_xact_lock(LOCK_SPACE, bindparam("number", type_=Integer)))
BEGIN_WRITER = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = {}"
LOCK_WRITER = f"; SELECT pg_advisory_xact_lock({LOCK_SPACE}, {{}})"

dump_json = partial(json.dumps, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def make_engine(address: Address) -> Engine:
    """Make an engine; nothing is opened yet.

    Raises:
        StoreError: The driver for PostgreSQL is not installed.
    """
    if address.is_sqlite:
        engine = create_engine(
            address.url,
            json_serializer=dump_json,
            connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        )
        event.listen(engine, "connect", prepare_sqlite)
        event.listen(engine, "begin", begin_sqlite)
        return engine
    try:
        engine = create_engine(
            address.url,
            json_serializer=dump_json,
            poolclass=BurstPool,
            pool_use_lifo=True,  # so that a burst goes on with the connection it has
            isolation_level="AUTOCOMMIT",  # we begin transactions, not the driver
            connect_args={
                name: value for name, value in LIVELINESS.items() if name not in address.url.query
            },
        )
    except (ImportError, NoSuchModuleError):
        raise StoreError(
            f"{address.label}: PostgreSQL needs its driver; pip install 'mixsearch[postgres]'"
        ) from None
    event.listen(engine, "checkout", refuse_closed)
    event.listen(engine, "begin", begin_postgresql)
    return engine


def prepare_sqlite(connection: sqlite3.Connection, record: Any) -> None:
    """Set what SQLite keeps per connection. We begin transactions, not the driver."""
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")


def begin_sqlite(connection: Connection) -> None:
    """Begin; a writer takes the write lock at once, so it never fails half-way for want of it."""
    writes = connection.get_execution_options().get(WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def refuse_closed(connection: Any, record: Any, proxy: Any) -> None:
    """Let the pool open a new connection in place of one that the server has closed.

    Nothing is sent, unlike by the pool's own ping: what a server says before it goes away, and that
    it is gone, has arrived already. Whoever comes too early for it hears it from his statement.

    Raises:
        InvalidatePoolError: The driver's connection is closed.
    """
    import psycopg

    try:
        connection.pgconn.consume_input()  # last words, if any
        connection.pgconn.consume_input()
    except psycopg.Error as error:
        raise InvalidatePoolError(str(error)) from error


def begin_postgresql(connection: Connection) -> None:
    """Begin, and take the lock of a writer with the same message."""
    raw: Any = connection.connection.driver_connection
    if not raw.autocommit:
        return  # a reader: the driver knows of its isolation
    words = BEGIN_WRITER.format(1000 * IDLE_WRITER_S)
    lock = connection.get_execution_options().get(LOCK)
    if lock is not None:
        words += LOCK_WRITER.format(lock_number(lock))
    connection.exec_driver_sql(words)


@contextmanager
def reading(engine: Engine, address: Address) -> Iterator[Connection]:
    """One consistent view of the store."""
    with translated(address), engine.connect() as connection:
        if not address.is_sqlite:
            connection = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine, address: Address, *, lock: int | None = None) -> Iterator[Connection]:
    """One short transaction that writes, committed at the end.

    Args:
        engine: The engine.
        address: For messages.
        lock: Writers with the same number take turns (PostgreSQL; SQLite has one writer anyway).
    """
    with translated(address), engine.connect() as plain:
        connection = plain.execution_options(**{WRITE: True, LOCK: lock})
        with connection.begin():
            yield connection


def take_lock(connection: Connection, number: int) -> None:
    """Wait for an advisory lock that ends with the transaction; nothing to do on SQLite."""
    if connection.dialect.name == "postgresql":
        connection.execute(TAKE_LOCK, {"number": lock_number(number)})


def lock_number(number: int) -> int:
    """Return the number of a lock in 32 bits; studies beyond them share locks, which costs time."""
    return number % 2**31


def database_time(connection: Connection) -> datetime:
    """Return the database's own time, by which leases run out."""
    return connection.execute(SELECT_TIME).scalar_one()


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn a database's errors into one line: which store, what is wrong, what to do."""
    try:
        yield
    except (IntegrityError, ProgrammingError) as error:
        if getattr(error.orig, "sqlstate", None) != NO_RIGHTS:
            raise  # ours, not the user's
        raise store_error(address, error.orig) from error
    except PoolTimeoutError as error:
        raise StoreAwayError(f"{address.label}: no connection became free: {error}") from error
    except (InterfaceError, OperationalError) as error:
        found = store_error(address, error.orig)
        if not address.is_sqlite or LOCKED in str(error.orig):
            found = StoreAwayError(str(found))
        raise found from error
    except DBAPIError as error:
        found = store_error(address, error.orig)
        if getattr(error.orig, "sqlstate", None) == IDLE_TOO_LONG:
            found = StoreAwayError(str(found))
        raise found from error


def store_error(address: Address, error: BaseException | None) -> StoreError:
    """Say what a driver's error means for the user."""
    message = address.scrub(str(error))
    if not address.is_sqlite:
        if any(sign in message for sign in NO_CONNECTION_FREE):
            return StoreError(f"{address.label}: {TOO_MANY_CONNECTIONS}")
        return StoreError(f"{address.label}: PostgreSQL cannot be used: {message}")
    if "disk I/O error" in message and not has_room(address):
        message = "database or disk is full"  # its shared memory could not grow
    for sign, meaning in SQLITE_FAILURES.items():
        if sign in message:
            command = ANOTHER if sign in (READONLY, NO_DATABASE) else ""
            return StoreError(f"{address.label}: {meaning}", command=command)
    return StoreError(f"{address.label}: SQLite cannot use it: {message}")


def has_room(address: Address) -> bool:
    """Whether the file system of an SQLite file has room for what it writes first."""
    assert address.path is not None
    try:
        return shutil.disk_usage(address.path.absolute().parent).free >= LEAST_ROOM_BYTES
    except OSError:
        return True


# The whole server, all but its administrator's connections, a database or a user.
NO_CONNECTION_FREE = ("too many clients", "remaining connection slots", "too many connections")
TOO_MANY_CONNECTIONS = (
    "PostgreSQL takes no more connections; raise its max_connections (two for each trial trained "
    "at once), or let workers go through 'search serve'"
)
LOCKED = "is locked"
READONLY, NO_DATABASE = "readonly database", "not a database"
SQLITE_FAILURES = {
    "disk is full": "the disk is full; free some space and try again (what was stored is kept)",
    LOCKED: f"another program has kept it locked for {BUSY_TIMEOUT_S:.0f} s; end that program "
    "and try again",
    READONLY: "it cannot be written to; check the permissions of the file and its folder",
    "unable to open": "it cannot be opened; check the permissions of the file and its folder",
    NO_DATABASE: "it is not an SQLite database",
    "malformed": "the file is damaged; put back a copy, or save what can be read with "
    "sqlite3 and its command .recover",
}
