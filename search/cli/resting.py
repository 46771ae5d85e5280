"""`search stop`, `search pause` and `search resume`: let a study rest, and let it go on."""

from typing import TYPE_CHECKING

from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption, StudyArgument
from search.cli.output import print_json, write

if TYPE_CHECKING:
    from search.store.operations import Change, Wish


def stop(
    study: StudyArgument = None, store: StoreOption = DEFAULT_STORE, json: JsonOption = False
) -> None:
    """End the work on a study for now or for good: no trial of it is handed out any more.

    As `search pause`, under another word: a study that is listed as paused is meant to go on, one
    that is stopped is not. `search resume` and the same `search run` lift either.
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
    study: StudyArgument = None, store: StoreOption = DEFAULT_STORE, json: JsonOption = False
) -> None:
    """Let a paused or stopped study hand out trials again; starts no worker of its own."""
    _change(study, "running", store, json=json)


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
    if wish == "running":
        if not change.changed:
            return f"{change.study}: is {change.state}; only a paused or stopped study is resumed"
        waiting = f"; {_trials(change.queued)} in the queue" if change.queued else ""
        goes_on = "'search run' or 'search worker' goes on"
        return f"{change.study}: hands out trials again{waiting}; {goes_on}"
    if not change.changed:
        return f"{change.study}: is {change.state} already; nothing changed"
    if not change.running:
        return f"{change.study}: {change.state}; no trial was in hand"
    return (
        f"{change.study}: {change.state}; {_trials(change.running)} in hand, saved and returned "
        "at the next step"
    )


def _trials(n: int) -> str:
    return f"{n} trial{'' if n == 1 else 's'}"
