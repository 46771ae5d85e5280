"""`search report`: the answer of a study once more, on the screen, as Markdown or as a page."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, ServerOption, StoreOption, StudyArgument
from search.cli.output import json_text, save, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from search.answers.answer import Answer
    from search.report.about import About
    from search.rows import TrialRow

FORMATS = {".txt": "text", ".md": "markdown", ".html": "html", ".htm": "html", ".json": "json"}
MOST_COLUMNS = 100


def report(
    study: StudyArgument = None,
    store: StoreOption = DEFAULT_STORE,
    server: ServerOption = None,
    output_format: Annotated[
        Literal["text", "markdown", "html", "json"] | None,
        typer.Option("--format", "-f", help="Form of the answer; by the file's ending, else text."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            "--output",
            metavar="FILE",
            help="Write to a file: .html (one page with all figures, needs no network), .md, .txt "
            "or .json.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print a study's answer, or write it as a page: verdicts, leaderboard, how sure, costs."""
    from search.cli.answering import answer_of
    from search.cli.opening import find_study, open_reader
    from search.errors import StoreError
    from search.report.about import about_study

    form = "json" if json else output_format or _form_of(output)
    with open_reader(store, server) as opened:
        found = find_study(opened, study)
        rows = opened.rows(found.name, documents=True)
        answer = answer_of(opened, found, rows)
        about = about_study(opened, found, rows, server or store)
        with suppress(StoreError):  # an answer that cannot be kept can still be read
            opened.save_verdicts(found.id, answer.verdict_rows())
    text = set_answer(answer, about, rows, form)
    if output is None:
        write(text)
    else:
        save(text, output)


def set_answer(answer: "Answer", about: "About", rows: "Sequence[TrialRow]", form: str) -> str:
    """Put an answer into one of the forms."""
    if form == "json":
        return json_text({"study": about.study, "answer": answer.to_dict()})
    if form == "markdown":
        from search.report.markdown import render_markdown

        return render_markdown(answer, about)
    if form == "html":
        from search.report.page import render_html

        return render_html(answer, rows, about)
    from search.report.text import render

    return render(answer, about, width=screen_width())


def screen_width() -> int:
    """Columns for the answer: those of a terminal, at most what reads well."""
    if not sys.stdout.isatty():
        return MOST_COLUMNS
    return min(MOST_COLUMNS, shutil.get_terminal_size().columns)


def _form_of(output: Path | None) -> str:
    from search.errors import InputError

    if output is None or not output.suffix:
        return "text"
    form = FORMATS.get(output.suffix.lower())
    if form is None:
        raise InputError(
            f"{output.name}: a report is written as {', '.join(FORMATS)}; rename the file, or "
            "choose with --format (figures as pictures: search plot)"
        )
    return form
