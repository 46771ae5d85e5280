"""`search mixers`: what is registered, what it claims, whether the claims hold."""

import inspect
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.mixers_bench import bench_mixers
from search.cli.mixers_card import card_document, card_text
from search.cli.mixers_check import check_mixers
from search.cli.mixers_draw import draw
from search.cli.mixers_new import new_mixer
from search.cli.mixers_route import route_stack
from search.cli.mixers_table1 import table_1
from search.cli.options import JsonOption
from search.cli.output import LEFT, RIGHT, note, print_json, table, write

if TYPE_CHECKING:
    from mixers.catalogue import MixerInfo
    from mixers.measure import Card

app = typer.Typer(
    help="List, describe and check the token mixers.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

KindArgument = Annotated[str, typer.Argument(metavar="KIND", help="Name of a mixer.")]


@app.command("list")
def list_mixers(json: JsonOption = False) -> None:
    """List every mixer that can be used here, and every broken one with the reason."""
    from mixers import available

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


@app.command("show")
def show_mixer(
    kind: KindArgument,
    is_measured: Annotated[
        bool,
        typer.Option("--measure", help="Measure claims, cost, errors and sizes; takes seconds."),
    ] = False,
    d_model: Annotated[
        int, typer.Option("--d-model", min=1, metavar="D", help="With --measure: features.")
    ] = 64,
    seq_len: Annotated[
        int, typer.Option("--seq-len", min=1, metavar="N", help="With --measure: tokens.")
    ] = 64,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="With --measure: draw who moves whom (.html, .png, .svg or .pdf).",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Describe a mixer: where it comes from, its settings, claims and cost."""
    from mixers.registry import mixer_registry
    from search.errors import InputError

    if out is not None and not is_measured:
        raise InputError("--out draws what --measure measures; give both")
    entry = mixer_registry.get(kind)
    card = _card(kind, d_model, seq_len) if is_measured else None
    if card is not None and out is not None:
        from search.figures.influence import influence_figure

        draw(influence_figure(kind, card.influence, card.d_model), out, title=kind)
    if json:
        measured = {} if card is None else {"measured": card_document(card)}
        schema = {"schema": _config_type(entry).model_json_schema()}
        print_json(_summary(entry) | schema | measured)
        return
    write(f"{kind}  (code {_plugin(entry).symbol}, {entry.distribution} {entry.version})")
    write(f"\n{_first_paragraph(_plugin(entry))}")
    write("")
    for name, value in _claims(entry).items():
        if value is not None:
            write(f"{name:<16}{_words(value)}")
    if card is None:
        write(f"\ncost at d_model 64, seq_len 64: {_cost_line(entry)}")
    else:
        write(f"\n{card_text(card)}")
    write("")
    fields = fields_of(entry)
    if not fields:
        write(f"no settings; in a study file: {kind}")
        return
    write(
        table(
            (("setting", LEFT), ("type", LEFT), ("default", LEFT), ("meaning", LEFT)),
            [(f["name"], f["type"], f["default"], f["description"]) for f in fields],
            flexible=("meaning",),
        )
    )


app.command("check")(check_mixers)
app.command("route")(route_stack)
app.command("table1")(table_1)
app.command("new")(new_mixer)
app.command("bench")(bench_mixers)


def _card(kind: str, d_model: int, seq_len: int) -> "Card":
    from mixers.measure import measure

    note("measuring: a few seconds")
    return measure(kind, d_model=d_model, seq_len=seq_len)


def _plugin(entry: Any) -> Any:
    assert entry.plugin is not None
    return entry.plugin


def _config_type(entry: Any) -> Any:
    return _plugin(entry).config_type


def _default_config(entry: Any) -> Any:
    """The config built from the kind alone at small sizes, or None if a setting is required."""
    from pydantic import ValidationError

    try:
        config = _config_type(entry)(kind=entry.kind)
    except ValidationError:
        return None
    return config.resolve(d_model=64, max_seq_len=64)


def _claims(entry: Any) -> dict[str, Any]:
    config = _default_config(entry)
    return {} if config is None else _plugin(entry).traits(config).model_dump()


def _summary(entry: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "kind": entry.kind,
        "distribution": entry.distribution,
        "version": entry.version,
        "origin": entry.origin,
        "broken": entry.reason,
    }
    if entry.plugin is not None:
        known |= {
            "symbol": entry.plugin.symbol,
            "traits": _claims(entry),
            "fields": fields_of(entry),
        }
    return known


def _row(info: "MixerInfo") -> tuple[str, ...]:
    claims = info.traits.model_dump() if info.traits is not None else {}
    source = (
        "built in" if info.distribution == "mixsearch" else f"{info.distribution} {info.version}"
    )
    shown = (claims.get(name) for name in ("reach", "cost", "linear", "position_aware"))
    return (info.kind, info.symbol or "?", *(_words(value) for value in shown), source)


def _words(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def fields_of(entry: Any) -> list[dict[str, str]]:
    """The settings of a mixer besides its kind."""
    found = []
    properties = _config_type(entry).model_json_schema()["properties"]
    for name, field in _config_type(entry).model_fields.items():
        if name == "kind":
            continue
        default = (
            "required" if field.is_required() else field.get_default(call_default_factory=True)
        )
        found.append(
            {
                "name": name,
                "type": _type_words(properties[name]),
                "default": "from the sizes" if default is None else str(default).lower(),
                "description": field.description or _documented(entry, name),
            }
        )
    return found


def _type_words(schema: dict[str, Any]) -> str:
    """A field's type from its JSON Schema: "integer >= 1", "shift | sign"."""
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    kinds = [part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"]
    words = []
    for part in kinds:
        text = str(part.get("type", "object"))
        for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<=")):
            if key in part:
                text += f" {sign} {part[key]}"
        words.append(text)
    return " | ".join(words)


def _documented(entry: Any, name: str) -> str:
    """What the config's docstring says about a field, in the `Attributes:` form."""
    lines = (inspect.getdoc(_config_type(entry)) or "").splitlines()
    for at, line in enumerate(lines):
        if not line.strip().startswith(f"{name}:"):
            continue
        indent = len(line) - len(line.lstrip())
        said = [line.split(":", 1)[1].strip()]
        for more in lines[at + 1 :]:
            if not more.strip() or len(more) - len(more.lstrip()) <= indent:
                break
            said.append(more.strip())
        return " ".join(said)
    return ""


def _first_paragraph(cls: type) -> str:
    return (inspect.getdoc(cls) or "").split("\n\n")[0]


def _cost_line(entry: Any) -> str:
    from search.wording import scaled

    config = _default_config(entry)
    if config is None:
        return "-"
    module = _plugin(entry)(config, d_model=64, max_seq_len=64)
    parameters = sum(p.numel() for p in module.parameters() if p.requires_grad)
    flops = _plugin(entry).flops(config, d_model=64, seq_len=64)
    return f"{scaled(parameters)} parameters, {scaled(flops)} FLOPs forward"
