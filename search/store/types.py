"""Column types that read the same on SQLite and PostgreSQL."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, Numeric, Row, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine

AnyRow = Row[*tuple[Any, ...]]
"""A row of any columns, read by name."""

TEXT_FORMAT = "%Y-%m-%d %H:%M:%S.%f+00:00"

# SQLite counts rows only in a column declared exactly INTEGER.
Key = BigInteger().with_variant(Integer(), "sqlite")

# PostgreSQL's binary form can be searched; SQLite keeps the text.
Document = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


MOST_INTEGER = 2**63 - 1
"""The largest integer that SQLite holds."""


class FlopCount(TypeDecorator[int]):
    """A number of FLOPs: BERT's whole training takes eight times what 64 bits count.

    PostgreSQL counts exactly (`numeric`). SQLite keeps an integer where it can, and what is larger
    as a float, within 1 part in 10^16.
    """

    impl = Numeric(asdecimal=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """An integer on SQLite, whose columns hold a float as well."""
        return dialect.type_descriptor(Integer() if dialect.name == "sqlite" else Numeric())

    def process_bind_param(self, value: int | None, dialect: Dialect) -> Any:
        """A float only where there is no integer."""
        if value is None or dialect.name != "sqlite" or value <= MOST_INTEGER:
            return value
        return float(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        """An integer from whatever the database holds."""
        return None if value is None else int(value)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time: `timestamptz` on PostgreSQL, ISO 8601 text with its offset on SQLite.

    The text sorts by time, and SQLite's own date functions read it.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Text on SQLite, the native type elsewhere."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String(32))
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Refuses naive times: they mean another moment on every machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time {value} has no time zone; use an aware datetime")
        utc = value.astimezone(UTC)
        return utc.strftime(TEXT_FORMAT) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Always aware, always UTC."""
        if value is None:
            return None
        read = datetime.fromisoformat(value) if isinstance(value, str) else value
        return read.astimezone(UTC)
