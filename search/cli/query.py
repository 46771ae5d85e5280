"""`search query`: SQL that can only read."""

import csv
import io
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, ServerOption, StoreOption
from search.cli.output import LEFT, RIGHT, note, print_json, table, write

if TYPE_CHECKING:
    from search.store.query import QueryResult


def query(
    sql: Annotated[
        str | None,
        typer.Argument(metavar="[SQL]", help="One SELECT on the views; '-' reads it from a pipe."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    server: ServerOption = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, metavar="N", help="Return at most N rows.")
    ] = 1000,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.01, metavar="SECONDS", help="End it after so long.")
    ] = 10.0,
    output_format: Annotated[
        Literal["table", "json", "csv"], typer.Option("--format", "-f", help="Form of the rows.")
    ] = "table",
    json: JsonOption = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the views with their columns.")
    ] = False,
) -> None:
    """Run one SELECT on the store's views; the connection itself refuses to write."""
    from search.cli.opening import open_reader
    from search.errors import InputError

    form = "json" if json else output_format
    if schema:
        _print_schema(form)
        return
    if sql is None:
        raise InputError('no query given; for example: search query "SELECT * FROM leaderboard"')
    text = typer.get_text_stream("stdin").read() if sql == "-" else sql
    with open_reader(store, server) as opened:
        result = opened.query(text, limit=limit, timeout_s=timeout)
    _print_rows(result, form)
    if result.truncated:
        note(f"only the first {len(result.rows)} rows; --limit shows more")


def _print_rows(result: "QueryResult", form: str) -> None:
    if form == "json":
        print_json(result.dicts())
    elif form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
        write(out.getvalue())
    else:
        columns = [
            (name, RIGHT if _is_numeric(result.rows, at) else LEFT)
            for at, name in enumerate(result.columns)
        ]
        write(table(columns, [[_cell(value) for value in row] for row in result.rows]))


def _is_numeric(rows: list[tuple[Any, ...]], at: int) -> bool:
    values = [row[at] for row in rows if row[at] is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(str(value).split())


def _print_schema(form: str) -> None:
    from search.store.views import VIEWS

    if form == "json":
        print_json({view.name: {"doc": view.doc, "columns": view.columns} for view in VIEWS})
        return
    if form == "csv":
        lines = [("view", "column", "meaning")]
        lines += [(view.name, name, doc) for view in VIEWS for name, doc in view.columns.items()]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(lines)
        write(out.getvalue())
        return
    for view in VIEWS:
        write(f"{view.name}: {view.doc}")
        grid = table(
            (("column", LEFT), ("meaning", LEFT)), view.columns.items(), flexible=("meaning",)
        )
        write("\n".join(f"  {line}" for line in grid.splitlines()) + "\n")
        write("")
