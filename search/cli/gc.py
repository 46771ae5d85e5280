"""`search gc`: free the files of trials that have ended."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.cli.numbers import size_in_bytes
from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from search.cli.output import LEFT, RIGHT, note, print_json, table, write

if TYPE_CHECKING:
    from search.upkeep.gc import Collected


def gc(
    keep: Annotated[
        Literal["best", "last", "all"],
        typer.Option(
            "--keep",
            help="last: the newest checkpoint of every ended trial; best: only that of each "
            "study's best trial; all: every file of a trial in the store.",
        ),
    ] = "last",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would go; remove nothing.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Free the files of ended trials on this machine, and those of trials that are gone.

    Trials that wait or run keep theirs. A pruned trial without its checkpoint starts over when it
    is promoted. Nothing outside the folder of the store's files is ever touched.
    """
    from search.cli.opening import open_store
    from search.files import Files
    from search.settings import settings
    from search.upkeep.gc import collect

    with open_store(store) as opened:
        files = Files.of(opened.address, settings())
        collected = collect(opened, files, keep, dry_run=dry_run)
    if json:
        print_json({**vars(collected), "size_bytes": collected.size_bytes, "dry_run": dry_run})
        return
    _show(collected, dry_run=dry_run)


def _show(collected: "Collected", *, dry_run: bool) -> None:
    if collected.freed:
        columns = (("study", LEFT), ("#", RIGHT), ("size", RIGHT), ("why", LEFT))
        rows = [
            (
                one.study or "-",
                "-" if one.number is None else str(one.number),
                size_in_bytes(one.size_bytes),
                one.why,
            )
            for one in collected.freed
        ]
        write(table(columns, rows))
    done = "would be freed" if dry_run else "freed"
    write(
        f"{collected.folder}: {size_in_bytes(collected.size_bytes)} {done}, "
        f"{size_in_bytes(collected.kept_bytes)} kept"
    )
    for path in collected.left_alone:
        note(f"left alone, as it is not a trial's folder: {path}")
