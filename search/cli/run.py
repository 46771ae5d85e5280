"""`search run`: spend a budget on a study and print its answer."""

import json as json_module
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.cli.options import DEFAULT_STORE, StoreOption
from search.cli.output import note, notes_console, print_json, write

if TYPE_CHECKING:
    from search.cli.watching import Watcher
    from search.engine.observer import RunOutcome
    from search.rows import StudyRow
    from search.spec.budget import Budget
    from search.spec.study import StudySpec
    from search.store.repo import Store


def run(
    study: Annotated[
        Path | None,
        typer.Argument(
            metavar="[STUDY.yaml]", help="A study file; the default study when left out."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            "-b",
            metavar="B",
            help="20 (trials), 30m, 2h (time) or 3e15flop, earlier runs of the study included; "
            "20 trials by default, all trainings of a listed study.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="N", help="Name of the study; derived from it by default."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="PATH|ID", help="Your text: a file, a folder or a Hugging Face id."
        ),
    ] = None,
    text_column: Annotated[
        str | None,
        typer.Option("--text-column", metavar="C", help="The field of the data that holds text."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            metavar="T",
            help="Folder, tokenizer.json or Hub id; trained on the data by default.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", metavar="M", help="Read about so many words of the data."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="S", help="Seed of the study.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Replace one setting of the study, as in training.steps=200; may be repeated.",
        ),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option("--device", "--accelerator", help="Where to train."),
    ] = "auto",
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", metavar="W", help="Trials at once; by default one, or one on each GPU."
        ),
    ] = None,
    queue: Annotated[
        bool,
        typer.Option(
            "--queue", help="Store the study and its budget for workers; train nothing here."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Time a few steps and print the plan; start nothing."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document a line for programs.")
    ] = False,
) -> None:
    """Search: train architectures until the budget is used up, then print the answer.

    The same command continues the same study; a larger budget goes on, a smaller one starts
    nothing. Ctrl-C finishes the step in hand and loses nothing.
    """
    from search.api import open as open_store
    from search.engine.runner import queue_study, run_study
    from search.errors import InterruptedRunError, RunFailedError
    from search.followups.recall_check import check_recall
    from search.spec.budget import Budget
    from search.spec.listed import default_budget

    given = None if budget is None else Budget.parse(budget)
    spec = assemble(
        study,
        settings or (),
        data=data,
        text_column=text_column,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        seed=seed,
    )
    amount = given or default_budget(spec)
    choose_device(device)
    if dry_run:
        print_plan(spec, amount, store, name, json=json)
        return
    with open_store(store, create=True) as opened:
        if queue:
            row = queue_study(opened, spec, amount, name)
            say_queued(row, opened.url, json=json)
            return
        if not json:
            say_beginning(name or spec.default_name, amount, is_default=given is None)
        with make_watcher(opened, json) as watcher:
            outcome = run_study(opened, spec, amount, name=name, observer=watcher, workers=workers)
            checked = None
            if outcome.exit_code == 0:
                checked = check_recall(
                    opened, outcome.study, spec, amount, watcher, workers=workers
                )
        for ended in (outcome, checked):
            if ended is not None and ended.exit_code == 130:
                raise InterruptedRunError(ended.message)
        if outcome.exit_code != 0:
            raise RunFailedError(outcome.message)
        print_answer(opened, outcome, store, json=json)


def assemble(
    path: Path | None,
    settings: "list[str] | tuple[str, ...]",
    *,
    data: str | None = None,
    text_column: str | None = None,
    tokenizer: str | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
) -> "StudySpec":
    """Put a study together from its file and the options that change it.

    Raises:
        InputError: The file or a setting is wrong; names the field's full path.
    """
    from search.spec.study_file import load_study, study_from, with_overrides

    options = {
        "task.data.source": data,
        "task.data.text_column": text_column,
        "task.data.max_tokens": max_tokens,
        "task.tokenizer": tokenizer,
        "seed": seed,
    }
    if tokenizer is not None and not any(s.startswith("task.vocab_size=") for s in settings):
        from search.data.tokenizer import vocabulary_size

        options["task.vocab_size"] = vocabulary_size(tokenizer)
    overrides = [*settings, *_as_settings(options)]
    if path is not None:
        return load_study(path, overrides)
    return study_from(with_overrides({}, overrides))


def _as_settings(options: dict[str, str | int | None]) -> Iterator[str]:
    for path, value in options.items():
        if value is not None:
            # YAML does not join the two escapes by which JSON writes an emoji.
            yield f"{path}={json_module.dumps(value, ensure_ascii=False)}"


def choose_device(device: str) -> None:
    """Hide the GPUs, or insist on one.

    Raises:
        InputError: A GPU is asked for and torch finds none.
    """
    from search.devices import visible_devices
    from search.errors import InputError

    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif device == "cuda" and visible_devices()[0].kind != "cuda":
        raise InputError("--device cuda: torch finds no GPU here; see 'search doctor'")


def print_plan(
    spec: "StudySpec", budget: "Budget", url: str, name: str | None, *, json: bool
) -> None:
    """Print what the budget buys; makes no store and starts nothing."""
    from search.api import open as open_store
    from search.errors import NothingThereError
    from search.planning.plan import plan_study
    from search.planning.plan_words import plan_lines

    with ExitStack() as stack:
        store = None
        with suppress(NothingThereError):
            store = stack.enter_context(open_store(url))
        note("timing the dearest and the cheapest architecture")
        plan = plan_study(spec, budget, store=store, name=name)
    if json:
        print_json({**vars(plan), "budget": str(budget)})
    else:
        write("\n".join(plan_lines(plan, spec)))


def say_beginning(name: str, budget: "Budget", *, is_default: bool) -> None:
    """Say what is prepared, since that may take a while before the first trial."""
    default = " (the default; --budget sets another)" if is_default else ""
    note(f"preparing study {name}, budget {budget}{default}")


def say_queued(row: "StudyRow", url: str, *, json: bool) -> None:
    """Say what waits for workers."""
    from search.spec.budget import Budget

    if json:
        print_json({"study": row.name, "state": row.state, "budget": row.budget, "store": url})
        return
    budget = "nothing to do" if row.budget is None else f"budget {Budget.parse(row.budget)}"
    write(f"study {row.name} is {row.state}, {budget}; train it with: search worker --store {url}")


def make_watcher(store: "Store", json: bool) -> "Watcher":
    """Choose how a run is shown: JSON lines, a live view on a terminal, or plain lines."""
    from search.cli.watching import JsonWatcher, PlainWatcher

    if json:
        return JsonWatcher(store)
    console = notes_console()
    if console.is_terminal and not console.is_dumb_terminal:
        from search.cli.live import LiveWatcher

        return LiveWatcher(store)
    return PlainWatcher(store)


def print_answer(store: "Store", outcome: "RunOutcome", url: str, *, json: bool) -> None:
    """Print the answer, the last word of a run, and keep its verdicts in the store."""
    from search.cli.answering import answer_of
    from search.cli.report import screen_width
    from search.cli.watching import JsonWatcher
    from search.report.about import about_study
    from search.report.text import render

    row = store.study(outcome.study)
    rows = store.rows(row.name, documents=True)
    answer = answer_of(store, row, rows)
    store.save_verdicts(row.id, answer.verdict_rows())
    if json:
        JsonWatcher(store).say("answer", study=row.name, answer=answer.to_dict())
        return
    note(f"{outcome.message}\n")
    write(render(answer, about_study(store, row, rows, url), width=screen_width()))
