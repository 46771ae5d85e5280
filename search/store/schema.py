"""The version of a store's schema: what is there, whether it may be opened, how it is upgraded."""

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, text

from search.errors import NothingThereError, StoreError
from search.store.address import ANOTHER, Address, parse_address
from search.store.engine import (
    BUSY_TIMEOUT_S,
    SCHEMA_LOCK,
    make_engine,
    reading,
    store_error,
    writing,
)
from search.store.opening import check_file

HEAD = "0004"
MIGRATIONS = Path(__file__).parent / "migrations"
VERSION_TABLE = "mixsearch_schema"

TABLES_SQL = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
    "ESCAPE '\\'",
    # Unlike information_schema it also lists what the user has no right to.
    "postgresql": "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema()",
}


@dataclass(frozen=True)
class Schema:
    """What a database holds.

    Attributes:
        kind: `current` may be opened; `empty` may be filled; `older` may be upgraded.
        version: The schema's version, if it is one of ours.
    """

    kind: Literal["empty", "foreign", "older", "current", "newer"]
    version: str | None = None


@dataclass(frozen=True)
class Upgrade:
    """What `upgrade` did: the versions before (None = empty) and after."""

    before: str | None
    after: str

    @property
    def changed(self) -> bool:
        """Whether anything was done."""
        return self.before != self.after


def inspect_schema(connection: Connection) -> Schema:
    """Say what a database holds; changes nothing."""
    names = set(connection.execute(text(TABLES_SQL[connection.dialect.name])).scalars())
    if not names:
        return Schema("empty")
    if VERSION_TABLE not in names:
        return Schema("foreign")
    version = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if version is None:
        return Schema("foreign")
    if version == HEAD:
        return Schema("current", version)
    return Schema("older" if str(version) < HEAD else "newer", version)


def require_current(schema: Schema, address: Address) -> None:
    """Refuse what this version cannot open.

    Raises:
        NothingThereError: The database is empty.
        StoreError: It is of another program or another version.
    """
    if schema.kind == "empty":
        raise NothingThereError(
            f"{address.label}: the store is empty", command=f"search run fills it, {ANOTHER}"
        )
    if schema.kind == "older":
        raise StoreError(
            f"{address.label}: has schema {schema.version}, this version needs {HEAD}; upgrade it",
            command=f"search upgrade --store {address.label}",
        )
    refuse_foreign(schema, address)


def refuse_foreign(schema: Schema, address: Address) -> None:
    """Refuse what an upgrade must not touch.

    Raises:
        StoreError: It belongs to another program or to a newer version of this one.
    """
    if schema.kind == "foreign":
        raise StoreError(
            f"{address.label}: holds the tables of another program and was left as it is",
            command=ANOTHER,
        )
    if schema.kind == "newer":
        raise StoreError(
            f"{address.label}: has schema {schema.version}, this version knows up to {HEAD}; "
            "install a newer one: pip install --upgrade mixsearch"
        )


def upgrade(url: str) -> Upgrade:
    """Bring a store to this version's schema, or create it; a second call does nothing.

    Raises:
        InputError: The URL is wrong.
        StoreError: It is unreadable, of another program, or newer. It is then left as it was.
    """
    address = parse_address(url)
    check_file(address, create=True)
    engine = make_engine(address)
    try:
        return migrate(engine, address)
    finally:
        engine.dispose()


def migrate(engine: Engine, address: Address) -> Upgrade:
    """Run the missing migrations in one transaction; processes that do so at once take turns."""
    with reading(engine, address) as connection:
        schema = inspect_schema(connection)
    refuse_foreign(schema, address)
    if schema.kind == "current":
        return Upgrade(schema.version, HEAD)
    if address.is_sqlite:
        use_wal(engine, address)
    with writing(engine, address, lock=SCHEMA_LOCK) as connection:
        schema = inspect_schema(connection)  # another process may have been faster
        refuse_foreign(schema, address)
        if schema.kind != "current":
            run_migrations(connection)
    return Upgrade(schema.version, HEAD)


def run_migrations(connection: Connection) -> None:
    """Run the migrations inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def use_wal(engine: Engine, address: Address) -> None:
    """Switch an SQLite file to write-ahead logging, which it remembers.

    SQLite does not wait for other processes here, so we do.

    Raises:
        StoreError: The file cannot be written, or stays locked.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.Error as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise store_error(address, error) from error
            time.sleep(0.02)
        finally:
            raw.close()
