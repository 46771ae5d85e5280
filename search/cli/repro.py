"""`search repro`: train a stored trial again and compare."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.numbers import decimals
from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption, StudyArgument
from search.cli.output import note, print_json, write

if TYPE_CHECKING:
    from search.repro.again import Reproduction

LABEL_WIDTH = 14


def repro(
    study: StudyArgument = None,
    trial: Annotated[
        int | None, typer.Argument(metavar="TRIAL", min=0, help="Number of the trial.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Train a trial again with its seed, recipe and threads: does the same come out?

    Every number has to be the same to the last bit where machine and versions are; elsewhere the
    objective has to lie in the printed interval. Ends with code 1 otherwise. Nothing is stored.
    """
    from search.cli.opening import find_study, find_trial, open_store
    from search.cli.studies import study_and_trial
    from search.errors import InputError, RunFailedError
    from search.repro.again import reproduce
    from search.settings import settings

    name, number = study_and_trial(study, trial)
    if number is None:
        raise InputError("name the trial by its number: search repro [STUDY] TRIAL")
    with open_store(store) as opened:
        found = find_study(opened, name)
        row = find_trial(opened, found, number)
        note(f"training trial {number} of {found.name} again: {row.steps} steps of {row.code}")

        def watch(step: int, metrics: Mapping[str, float]) -> None:
            note(f"  step {step}: {found.objective} {decimals(metrics.get(found.objective))}")

        made = reproduce(opened, found, row, settings(), watch=watch)
    if json:
        print_json({**vars(made), "holds": made.holds})
    else:
        write("\n".join(reproduction_lines(made)))
    if not made.holds:
        raise RunFailedError(f"trial {number} of {found.name} was not reproduced: {why(made)}")


def reproduction_lines(made: "Reproduction") -> Iterator[str]:
    """Set a comparison as text."""
    yield _line("trial", f"{made.number} of {made.study}")
    if not made.facts:
        yield _line("environment", "as on record")
    for fact in made.facts:
        yield _line(
            "environment", f"{fact.name}: {fact.recorded or 'none'} -> {fact.now or 'none'}"
        )
    for one in made.compared:
        first = f"; first {one.first}" if one.first else ""
        gap = f"; largest difference {one.largest:.3g}" if one.largest else ""
        yield _line(one.what, f"{one.equal} of {one.n} equal to the last bit{first}{gap}")
    yield _line(made.objective, f"{made.recorded!r} on record, {made.repeated!r} now")
    if made.verdict != "bitwise" and made.interval is not None:
        interval = made.interval
        yield _line(
            "interval",
            f"{interval.low:.6g} to {interval.high:.6g} (95 %; SD {interval.sd:.3g}, "
            f"{interval.df} degrees of freedom, {interval.source})",
        )
    yield _line("verdict", VERDICTS[made.verdict])


def why(made: "Reproduction") -> str:
    """Say in a few words why a trial was not reproduced."""
    return VERDICTS[made.verdict]


VERDICTS = {
    "bitwise": "reproduced to the last bit",
    "inside": "not the same bits in another environment, but inside the interval",
    "outside": "outside the interval that repeats of other seeds suggest",
    "different": "numbers differ though machine and versions are as on record",
    "unknown": "numbers differ in another environment, and no repeats say how much they may",
}


def _line(label: str, value: object) -> str:
    return f"{label:<{LABEL_WIDTH}}{value}"
