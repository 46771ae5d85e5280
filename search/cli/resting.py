"""`search stop`, `search pause` and `search resume`: let a study rest, and let it go on."""

from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption, StudyArgument
from search.cli.output import print_json, write

if TYPE_CHECKING:
    from search.store.operations import Change, Wish


def stop(
    study: StudyArgument = None, store: StoreOption = DEFAULT_STORE, json: JsonOption = False
) -> None:
    """End a study for good: its answer is what its trials have shown so far.

    No trial of it is handed out any more; one in hand is ended at its next step, with its worker's
    next sign of life, and those that wait end with it. To let a study rest for a while, use `search
    pause`. A stopped one is taken up again by `search resume --stopped` alone; the trials that
    ended with it stay ended, unless `search retry --state stopped` queues them.
    """
    _change(study, "stopped", store, json=json)


def pause(
    study: StudyArgument = None, store: StoreOption = DEFAULT_STORE, json: JsonOption = False
) -> None:
    """Let a study rest: no trial of it is handed out until `search resume`.

    A trial in hand is saved at its next step, with its worker's next sign of life, and waits in
    the queue: nothing is lost. A `search run` at work ends; a `search worker` goes to other
    studies and comes back.
    """
    _change(study, "paused", store, json=json)


def resume(
    study: StudyArgument = None,
    store: StoreOption = DEFAULT_STORE,
    stopped: Annotated[
        bool, typer.Option("--stopped", help="Also one that was stopped for good.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Let a paused study hand out trials again; starts no worker of its own."""
    _change(study, "reopened" if stopped else "running", store, json=json)


def _change(study: str | None, wish: "Wish", url: str, *, json: bool) -> None:
    from search.cli.opening import find_study, open_store

    with open_store(url) as store:
        found = find_study(store, study)
        change = store.change_state(found.id, wish)
    if json:
        print_json(change)
    else:
        write(change_words(change, wish))


def change_words(change: "Change", wish: "Wish") -> str:
    """Say in one line what became of a study's state and what follows from it."""
    if wish in ("running", "reopened"):
        if not change.changed:
            return f"{change.study}: is {change.state}; only a paused or stopped study is resumed"
        waiting = f"; {_trials(change.queued)} in the queue" if change.queued else ""
        goes_on = "'search run' or 'search worker' goes on"
        return f"{change.study}: hands out trials again{waiting}; {goes_on}"
    if not change.changed:
        return f"{change.study}: is {change.state} already; nothing changed"
    follows = "ended" if wish == "stopped" else "saved and returned"
    in_hand = f"{_trials(change.running)} in hand, {follows} at the next step"
    line = (
        f"{change.study}: {change.state}; {in_hand if change.running else 'no trial was in hand'}"
    )
    return f"{line}; 'search report' draws its answer" if wish == "stopped" else line


def _trials(n: int) -> str:
    return f"{n} trial{'' if n == 1 else 's'}"
