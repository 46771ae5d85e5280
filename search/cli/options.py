"""The arguments and options that several commands share, so that they read the same."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_STORE = "sqlite:///search.db"

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="SEARCH_STORE",
        metavar="URL",
        help="Where trials are kept: an SQLAlchemy URL or the path of an SQLite file.",
    ),
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="SEARCH_SERVER",
        metavar="URL",
        help="Read from `search serve` there instead; SEARCH_TOKEN holds the token.",
    ),
]
StudyArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]",
        help="Name of the study; may be left out when the store holds exactly one.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write to a file instead of the screen."),
]
LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, metavar="N", help="Show at most N rows.")
]
