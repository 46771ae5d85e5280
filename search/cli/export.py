"""`search export`: a view of the store as a file for other programs."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from search.cli.options import DEFAULT_STORE, ServerOption, StoreOption, StudyArgument
from search.cli.output import note


def export(
    study: StudyArgument = None,
    store: StoreOption = DEFAULT_STORE,
    server: ServerOption = None,
    view: Annotated[
        str,
        typer.Option("--view", metavar="VIEW", help="A view that `search query --schema` lists."),
    ] = "trials_flat",
    output_format: Annotated[
        Literal["csv", "jsonl", "parquet"] | None,
        typer.Option("--format", "-f", help="Form; by the file's ending, else csv."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to a file; the screen when left out."
        ),
    ] = None,
) -> None:
    """Export the rows of a view, of one study or (without a name) of all studies."""
    from search.cli.opening import open_reader
    from search.errors import InputError, NothingThereError
    from search.export import export_view, read_view, write_text

    with open_reader(store, server) as opened:
        name = opened.study(study).name if study is not None else None
        columns, rows = read_view(opened, view, name)
        if not rows:
            whose = f"study {name!r}" if name is not None else "the store"
            raise NothingThereError(f"{view} has no row of {whose} yet; nothing was written")
        if output is not None:
            n_rows = export_view(opened, output, view=view, study=name, form=output_format)
            note(f"wrote {n_rows} rows of {view} to {output}")
            return
    if output_format == "parquet":
        raise InputError("parquet is binary; name a file with -o")
    write_text(columns, rows, sys.stdout, output_format or "csv")
