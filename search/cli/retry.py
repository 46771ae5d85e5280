"""`search retry`: queue ended trials for another attempt."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption, StudyArgument
from search.cli.output import note, print_json, write

if TYPE_CHECKING:
    from search.rows import StudyRow, TrialState
    from search.store.operations import Retried


def retry(
    study: StudyArgument = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Which trials: failed (the default), diverged or stopped; may be repeated.",
        ),
    ] = None,
    cause: Annotated[
        list[str] | None,
        typer.Option(
            "--cause",
            metavar="CAUSE",
            help="Only those whose last attempt ended for this cause, such as out_of_memory; may "
            "be repeated.",
        ),
    ] = None,
    trial: Annotated[
        list[int] | None,
        typer.Option(
            "--trial", min=0, metavar="N", help="Only this trial, however it ended; repeatable."
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Queue trials that failed for another attempt; workers train them before anything new.

    A trial keeps its number and its place in a budget of trials; the FLOPs of its whole training
    are reserved again. Its attempts so far stay on record.
    """
    from search.cli.opening import find_study, open_store

    numbers = trial or []
    states = states_of(state, any_by_default=bool(numbers))
    causes = causes_of(cause or ())
    with open_store(store) as opened:
        found = find_study(opened, study)
        queued = opened.retry(found.id, states=states, causes=causes, numbers=numbers)
    if json:
        print_json({"study": found.name, "state": found.state, "trials": queued})
        return
    if not queued:
        write(f"{found.name}: nothing to try again: no trial is {' or '.join(states)}{_of(causes)}")
        return
    write("\n".join(_lines(found, queued)))
    if found.state in ("paused", "stopped"):
        note(f"the study is {found.state}: 'search resume {found.name}' lets it go on")


def states_of(given: Sequence[str] | None, *, any_by_default: bool) -> "tuple[TrialState, ...]":
    """Return the states that are meant.

    Raises:
        InputError: One of them is no state from which a trial can be tried again.
    """
    from search.errors import InputError
    from search.store.operations import RETRIABLE

    if not given:
        return RETRIABLE if any_by_default else RETRIABLE[:1]
    for name in given:
        if name not in RETRIABLE:
            raise InputError(f"--state {name}: expected {', '.join(RETRIABLE)}")
    return tuple(state for state in RETRIABLE if state in given)


def causes_of(given: Sequence[str]) -> tuple[str, ...]:
    """Return the causes that are meant.

    Raises:
        InputError: One of them is no cause of a failure.
    """
    from typing import get_args

    from search.errors import InputError
    from search.messages import Cause

    for name in given:
        if name not in get_args(Cause):
            raise InputError(f"--cause {name}: expected {', '.join(get_args(Cause))}")
    return tuple(given)


def _of(causes: Sequence[str]) -> str:
    return f" for the cause {' or '.join(causes)}" if causes else ""


def _lines(study: "StudyRow", queued: "Sequence[Retried]") -> list[str]:
    plural = "" if len(queued) == 1 else "s"
    lines = [f"{study.name}: {len(queued)} trial{plural} queued again"]
    for one in queued:
        cause = f" ({one.cause})" if one.cause else ""
        lines.append(f"  {one.number}: was {one.before}{cause}; attempt {one.attempts + 1} follows")
    return lines
