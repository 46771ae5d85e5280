"""`search merge`: take the studies of another store in."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from search.cli.output import LEFT, RIGHT, note, print_json, table, write

if TYPE_CHECKING:
    from search.store.merging import Merged
    from search.store.repo import Store


def merge(
    source: Annotated[
        str,
        typer.Argument(
            metavar="STORE", help="The other store: a URL or the path of an SQLite file; only read."
        ),
    ],
    store: StoreOption = DEFAULT_STORE,
    study: Annotated[
        str | None,
        typer.Option("--study", metavar="S", help="Only this study, with those derived from it."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="N", help="The study's name here; goes with --study."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Take the studies of another store into this one; the other stays as it is.

    Trials get new ids. One whose architecture, training key and seed are here already is skipped,
    so the same command may be repeated; one that has not ended there is left out. A study that is
    here with another spec is refused. Files of trials do not move.
    """
    from search.api import open as open_store
    from search.engine.claims import FINGERPRINT
    from search.errors import InputError

    if name is not None and study is None:
        raise InputError("--name names one study; say which with --study")
    with open_store(source) as other:
        refuse_itself(other, store)
        with open_store(store, create=True) as opened:
            merged = opened.merge(other, study=study, name=name, must_agree=(FINGERPRINT,))
    if json:
        print_json(merged)
        return
    write(merged_table(merged))
    for line in _notes(merged):
        note(line)


def refuse_itself(other: "Store", url: str) -> None:
    """Refuse to merge a store into itself.

    Raises:
        InputError: Both are one.
    """
    from search.errors import InputError
    from search.store.address import parse_address

    target = parse_address(url)
    same = other.address.url == target.url
    if other.address.path is not None and target.path is not None:
        same = other.address.path.resolve() == target.path.resolve()
    if same:
        raise InputError(f"{target.label}: is both stores; name the other one first")


def merged_table(merged: "Sequence[Merged]") -> str:
    """What became of each study, as aligned rows."""
    columns = (
        ("study", LEFT),
        ("here", LEFT),
        ("added", RIGHT),
        ("already here", RIGHT),
        ("left out", RIGHT),
    )
    rows = [
        (
            one.study,
            f"new, as {one.name}" if one.created else f"joined {one.name}",
            str(one.added),
            str(one.duplicates),
            str(one.left_out),
        )
        for one in merged
    ]
    return table(columns, rows)


def _notes(merged: "Sequence[Merged]") -> Iterator[str]:
    if any(one.left_out for one in merged):
        yield "left out: trials that have not ended there; merge again when they have"
    if any(not one.created and one.added for one in merged):
        yield "a study that was joined gets a new answer with 'search best' or 'search report'"
