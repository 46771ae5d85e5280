"""Writes a public view of the store as CSV, JSON lines or Parquet.

JSON is strict: the store holds no NaN and no infinity, and what is absent is null. In CSV it is an
empty field. Files are written beside their place and renamed, so a reader never sees half of one.
"""

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, get_args
from uuid import uuid4

from search.errors import InputError

if TYPE_CHECKING:
    from search.store.readable import ReadableStore

Form = Literal["csv", "jsonl", "parquet"]
FORMS: tuple[Form, ...] = get_args(Form)
SUFFIXES: Mapping[str, Form] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
Rows = Sequence[Mapping[str, Any]]


def export_view(
    store: "ReadableStore",
    path: Path,
    *,
    view: str = "trials_flat",
    study: str | None = None,
    form: Form | None = None,
) -> int:
    """Write a view into a file; returns the number of rows.

    Args:
        store: The store.
        path: The file; replaced if it is there.
        view: Name of a public view.
        study: Rows of this study alone.
        form: By default what the file's name ends in.

    Raises:
        InputError: No such view, an unknown form, or Parquet without pyarrow.
        NothingThereError: No such study.
    """
    form = form or form_of(path)
    if form == "parquet":
        require_pyarrow()
    columns, rows = read_view(store, view, study)
    beside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        if form == "parquet":
            with beside.open("wb") as binary:
                write_parquet(columns, rows, binary)
                flush(binary)
        else:
            with beside.open("w", encoding="utf-8", newline="") as file:
                write_text(columns, rows, file, form)
                flush(file)
        beside.replace(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no folder {path.parent}; make it first") from None
    finally:
        beside.unlink(missing_ok=True)
    return len(rows)


def read_view(
    store: "ReadableStore", view: str, study: str | None = None
) -> tuple[tuple[str, ...], Rows]:
    """Return a view's columns and rows, also where it has no row.

    Raises:
        InputError: No such view.
        NothingThereError: No such study.
    """
    from search.store.views import find_view

    return tuple(find_view(view).columns), store.view(view, study)


def form_of(path: Path) -> Form:
    """Return the form that a file's name ends in.

    Raises:
        InputError: It ends in none.
    """
    form = SUFFIXES.get(path.suffix.lower())
    if form is None:
        raise InputError(
            f"{path}: no form is known by that ending; end it in {', '.join(SUFFIXES)} or name one "
            f"of {', '.join(FORMS)}"
        )
    return form


def write_text(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], file: IO[str], form: Form
) -> None:
    """Write rows as CSV or JSON lines into an open text file.

    Raises:
        InputError: The form is not text.
    """
    if form == "jsonl":
        for row in rows:
            line = {column: row[column] for column in columns}
            file.write(json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n")
        return
    if form != "csv":
        raise InputError(f"{form} is binary; write it to a file")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([csv_value(row[column]) for column in columns] for row in rows)


def csv_value(value: Any) -> Any:
    """Return a value as CSV shows it: true and false as in JSON, numbers with all digits."""
    return str(value).lower() if isinstance(value, bool) else value


def write_parquet(columns: Sequence[str], rows: Rows, file: IO[bytes]) -> None:
    """Write rows as Parquet; columns without a value are text, times are UTC timestamps."""
    import pyarrow as pa
    from pyarrow import parquet

    arrays = []
    for column in columns:
        values = [row[column] for row in rows]
        if column.endswith("_at"):
            times = [datetime.fromisoformat(value) if value else None for value in values]
            arrays.append(pa.array(times, pa.timestamp("us", tz="UTC")))
        else:
            arrays.append(pa.array(values, arrow_type(values)))
    parquet.write_table(pa.table(arrays, names=list(columns)), file)


def arrow_type(values: Sequence[Any]) -> Any:
    """Return the narrowest of Parquet's types that holds all values."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def require_pyarrow() -> None:
    """Refuse Parquet where its library is missing.

    Raises:
        InputError: With the command that installs it.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow; pip install 'mixsearch[parquet]', or export CSV or JSON lines"
        ) from None


def flush(file: IO[Any]) -> None:
    """Bring a file to the disk before it takes its name."""
    file.flush()
    os.fsync(file.fileno())
