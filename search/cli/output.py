"""Print results: aligned tables, strict JSON, and where notes go.

Results go to standard output, everything about their making to standard error, so that a pipe
receives the result alone.
"""

import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

LEFT, RIGHT = "left", "right"
UNLIMITED_WIDTH = 100_000


def jsonable(value: Any) -> Any:
    """Turn rows, specs and numbers into what JSON knows; what is not finite becomes null."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "model_dump"):
        return jsonable(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [jsonable(item) for item in value]
    if isinstance(value, date | datetime):
        return value.isoformat()
    if hasattr(value, "item"):
        return jsonable(value.item())
    return str(value)


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Strict JSON: never NaN, keys in the order given."""
    return json.dumps(jsonable(value), indent=indent, ensure_ascii=False, allow_nan=False)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    write(json_text(value))


def write(text: str, *, flush: bool = False) -> None:
    """Write a result to standard output, ended by one newline."""
    sys.stdout.write(text.rstrip("\n") + "\n")
    if flush:
        sys.stdout.flush()


def note(text: str) -> None:
    """Tell the person something that is not the result."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def save(text: str, path: Path) -> None:
    """Write a result to a file and say where it lies."""
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    note(f"wrote {path}")


def notes_console() -> "Console":
    """The console on standard error, for progress and live tables."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def table(
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[str]],
    *,
    flexible: Sequence[str] = (),
) -> str:
    """Align cells under a header.

    On a terminal the flexible columns give way to its width; in a pipe nothing is cut.

    Args:
        columns: Header and alignment (`LEFT` or `RIGHT`) of each column.
        rows: Cells as text, one sequence a row.
        flexible: Headers of the columns that may wrap on a narrow terminal.

    Returns:
        The table as text without trailing blanks.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header, side in columns:
        grid.add_column(
            header,
            justify="right" if side == RIGHT else "left",
            no_wrap=header not in flexible,
            overflow="fold",
        )
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    on_terminal = sys.stdout.isatty()
    console = (
        Console(highlight=False) if on_terminal else Console(width=UNLIMITED_WIDTH, highlight=False)
    )
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
