"""`search plot`: pictures of a study."""

from pathlib import Path
from typing import Annotated

import typer

from search.cli.options import DEFAULT_STORE, ServerOption, StoreOption
from search.cli.output import note

KINDS = ("leaderboard", "curves", "heat-map", "effects", "pareto", "counts")
PAGE_ENDINGS = (".html", ".htm")


def plot(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND]... [STUDY]",
            help=f"What to draw ({', '.join(KINDS)}; all when left out) and the study's name.",
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    server: ServerOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A page (.html, any number of figures, needs no network) or a picture "
            "(.png, .svg, .pdf, one figure); STUDY.html by default.",
        ),
    ] = None,
) -> None:
    """Draw a study: leaderboard, learning curves, layers, size against quality, cheap layers."""
    from search.cli.answering import answer_of, require_finished
    from search.cli.opening import find_study, open_reader
    from search.errors import InputError
    from search.figures.files import write_html, write_image
    from search.figures.plots import FIGURES

    kinds, name = kinds_and_study(words or [])
    with open_reader(store, server) as opened:
        found = find_study(opened, name)
        rows = opened.rows(found.name, documents=True)
        answer = answer_of(opened, found, rows)
    require_finished(answer, found)
    stem = found.name if len(kinds) > 1 else f"{found.name}-{kinds[0]}"
    path = output or Path(f"{stem}.html")
    if path.suffix.lower() in PAGE_ENDINGS:
        write_html([FIGURES[kind](rows, answer) for kind in kinds], path, title=found.name)
    elif len(kinds) > 1:
        raise InputError(f"{path}: a picture holds one figure; name one of {', '.join(KINDS)}")
    else:
        write_image(FIGURES[kinds[0]](rows, answer), path)
    note(f"wrote {path}")


def kinds_and_study(words: list[str]) -> tuple[list[str], str | None]:
    """Tell the kinds of figures from the study's name; all kinds where none is named.

    Raises:
        InputError: More than one word is no kind.
    """
    from mixers.registry import suggestion
    from search.errors import InputError

    kinds = [word for word in words if word in KINDS]
    names = [word for word in words if word not in KINDS]
    if len(names) > 1:
        raise InputError(f"figure {names[0]!r} is unknown; {suggestion(names[0], KINDS)}")
    return kinds or list(KINDS), names[0] if names else None
