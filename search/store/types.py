"""Column types that read the same on SQLite and PostgreSQL."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, Row, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine

AnyRow = Row[*tuple[Any, ...]]
"""A row of any columns, read by name."""

TEXT_FORMAT = "%Y-%m-%d %H:%M:%S.%f+00:00"

# SQLite counts rows only in a column declared exactly INTEGER.
Key = BigInteger().with_variant(Integer(), "sqlite")

# PostgreSQL's binary form can be searched; SQLite keeps the text.
Document = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


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
