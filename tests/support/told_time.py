"""A database whose clock says what it is told, wherever a statement asks for the time."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, event

from search.store.engine import CLOCKS
from search.store.types import TEXT_FORMAT

TYPES = {"sqlite": "TEXT", "postgresql": "TIMESTAMPTZ"}


def tell_time(engine: Engine | type[Engine], now: Callable[[], datetime]) -> None:
    """Let the clock of an engine (or of every engine of this process) be `now`, in UTC."""

    def told(
        connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ) -> tuple[str, Any]:
        name = connection.dialect.name
        time = f"CAST('{now().strftime(TEXT_FORMAT)}' AS {TYPES[name]})"
        return statement.replace(CLOCKS[name], time), parameters

    event.listen(engine, "before_cursor_execute", told, retval=True)
