"""`search report`: the answer of a study once more."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, OutputOption, StoreOption, StudyArgument
from search.cli.output import json_text, save, write

if TYPE_CHECKING:
    from search.answers.answer import Answer

FORMATS = {".txt": "text", ".md": "markdown", ".json": "json"}
MOST_COLUMNS = 100


def report(
    study: StudyArgument = None,
    store: StoreOption = DEFAULT_STORE,
    output_format: Annotated[
        Literal["text", "markdown", "json"] | None,
        typer.Option("--format", "-f", help="Form of the answer; by the file's ending, else text."),
    ] = None,
    output: OutputOption = None,
    json: JsonOption = False,
) -> None:
    """Print a study's answer: leaderboard, verdicts, noise, effects, costs and what is open."""
    from search.cli.answering import answer_of
    from search.cli.opening import find_study, open_store
    from search.errors import StoreError

    form = "json" if json else output_format or _form_of(output)
    with open_store(store) as opened:
        found = find_study(opened, study)
        answer = answer_of(opened, found)
        with suppress(StoreError):  # an answer that cannot be kept can still be read
            opened.save_verdicts(found.id, answer.verdict_rows())
    text = set_answer(answer, found.name, store, form)
    if output is None:
        write(text)
    else:
        save(text, output)


def set_answer(answer: "Answer", study: str, store: str, form: str) -> str:
    """Put an answer into one of the forms."""
    from search.report.text import render, render_markdown

    if form == "json":
        return json_text({"study": study, "answer": answer.to_dict()})
    if form == "markdown":
        return render_markdown(answer, study=study, store=store)
    return render(answer, study=study, store=store, width=screen_width())


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
            "choose with --format (figures as HTML: search plot)"
        )
    return form
