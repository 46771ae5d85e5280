"""`search mixers`: what is registered, what it claims, whether the claims hold."""

import warnings
from typing import TYPE_CHECKING

import typer

from search.cli.mixers_bench import bench_mixers
from search.cli.mixers_check import check_mixers
from search.cli.mixers_new import new_mixer
from search.cli.mixers_route import route_stack
from search.cli.mixers_show import show_mixer, words
from search.cli.mixers_table1 import table_1
from search.cli.options import JsonOption
from search.cli.output import LEFT, RIGHT, note, print_json, table, write

if TYPE_CHECKING:
    from mixers.catalogue import MixerInfo

app = typer.Typer(
    help="List, describe and check the token mixers.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command("list")
def list_mixers(json: JsonOption = False) -> None:
    """List every mixer that can be used here, and every broken one with the reason."""
    from mixers import available
    from mixers.presets import NAMES

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the list itself says what is broken
        found = available()
    if json:
        print_json(found)
        return
    usable = [info for info in found.values() if info.broken is None]
    columns = (
        ("kind", LEFT),
        ("code", LEFT),
        ("reach", RIGHT),
        ("cost", LEFT),
        ("linear", LEFT),
        ("order matters", LEFT),
        ("from", LEFT),
    )
    write(table(columns, [_row(info) for info in usable]))
    for name, info in found.items():
        if info.broken is not None:
            write(
                f"broken: {name} of {info.distribution} {info.version}: "
                f"{' '.join(info.broken.split())}"
            )
    note("`search mixers show KIND` describes one; `search mixers check KIND` tests its claims")
    note(f"presets of whole encoders: {', '.join(NAMES)}; `search mixers show preset:NAME`")


app.command("show")(show_mixer)
app.command("check")(check_mixers)
app.command("route")(route_stack)
app.command("table1")(table_1)
app.command("new")(new_mixer)
app.command("bench")(bench_mixers)


def _row(info: "MixerInfo") -> tuple[str, ...]:
    claims = info.traits.model_dump() if info.traits is not None else {}
    source = (
        "built in" if info.distribution == "mixsearch" else f"{info.distribution} {info.version}"
    )
    shown = (claims.get(name) for name in ("reach", "cost", "linear", "position_aware"))
    return (info.kind, info.symbol or "?", *(words(value) for value in shown), source)
