"""`search mixers show`: one mixer, or one preset of a whole encoder."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.encoder_specs import is_notation, preset_named
from search.cli.mixers_card import amount, card_document, card_text
from search.cli.mixers_draw import draw
from search.cli.mixers_preset import preset_document, preset_text
from search.cli.options import JsonOption
from search.cli.output import LEFT, note, print_json, table, write

if TYPE_CHECKING:
    from mixers import MixerConfig
    from mixers.measure import Card

SIZE = 64
"""Features and tokens at which a mixer's cost is told."""


def show_mixer(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a mixer, notation such as 'sepconv(kernel_size=5)', or a preset of a "
            "whole encoder, such as modernbert.",
        ),
    ],
    is_measured: Annotated[
        bool,
        typer.Option("--measure", help="Measure claims, cost, errors and sizes; takes seconds."),
    ] = False,
    d_model: Annotated[
        int, typer.Option("--d-model", min=1, metavar="D", help="With --measure: features.")
    ] = SIZE,
    seq_len: Annotated[
        int, typer.Option("--seq-len", min=1, metavar="N", help="With --measure: tokens.")
    ] = SIZE,
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
    from search.errors import InputError

    if out is not None and not is_measured:
        raise InputError("--out draws what --measure measures; give both")
    preset = preset_named(name)
    if preset is not None:
        if is_measured:
            raise InputError(f"{name} is a whole encoder, and --measure measures one mixer")
        print_json(preset_document(preset)) if json else write(preset_text(preset))
        return
    entry, config = mixer_named(name)
    card = measured(name, config, d_model, seq_len) if is_measured else None
    if card is not None and out is not None:
        from search.figures.influence import influence_figure

        draw(influence_figure(name, card.influence, card.d_model), out, title=name)
    if json:
        card_part = {} if card is None else {"measured": card_document(card)}
        schema = {"schema": entry.plugin.config_type.model_json_schema()}
        print_json(summary(entry, config) | schema | card_part)
        return
    write("\n".join(described(name, entry, config, card)))


def mixer_named(name: str) -> tuple[Any, "MixerConfig | None"]:
    """Return the registry's entry of a mixer and its config; None where a setting is required.

    Raises:
        InputError: Notation of several layers.
        MixerError: Nothing usable has this name, or a setting is wrong.
    """
    from pydantic import ValidationError

    from mixers import parse_architecture
    from mixers.registry import mixer_registry
    from search.errors import InputError

    if is_notation(name):
        configs = parse_architecture(name)
        if len(configs) > 1:
            raise InputError(f"{name!r} has {len(configs)} layers; name one")
        return mixer_registry.get(configs[0].kind), configs[0]
    entry = mixer_registry.get(name)
    assert entry.plugin is not None
    try:
        return entry, entry.plugin.config_type(kind=entry.kind)
    except ValidationError:
        return entry, None


def measured(name: str, config: "MixerConfig | None", d_model: int, seq_len: int) -> "Card":
    """Measure a mixer.

    Raises:
        InputError: It has no default config.
    """
    from mixers.measure import measure
    from search.errors import InputError

    if config is None:
        raise InputError(f"{name} has settings without a default; name them: '{name}(field=value)'")
    note("measuring: a few seconds")
    return measure(config, d_model=d_model, seq_len=seq_len)


def described(
    name: str, entry: Any, config: "MixerConfig | None", card: "Card | None"
) -> list[str]:
    """Return the description as lines."""
    lines = [f"{name}  (code {entry.plugin.symbol}, {entry.distribution} {entry.version})", ""]
    lines += [(inspect.getdoc(entry.plugin) or "").split("\n\n")[0], ""]
    lines += [
        f"{claim:<20}{words(value)}"
        for claim, value in claims_of(entry, config).items()
        if value is not None
    ]
    if card is not None:
        lines += ["", card_text(card)]
    elif config is not None:
        lines += ["", f"cost at d_model {SIZE}, seq_len {SIZE}: {cost_words(entry, config)}"]
    fields = fields_of(entry)
    if not fields:
        return [*lines, "", f"no settings; in a study file: {entry.kind}"]
    columns = (("setting", LEFT), ("type", LEFT), ("default", LEFT), ("meaning", LEFT))
    rows = [(f["name"], f["type"], f["default"], f["description"]) for f in fields]
    return [*lines, "", table(columns, rows, flexible=("meaning",))]


def claims_of(entry: Any, config: "MixerConfig | None") -> dict[str, Any]:
    """Return the traits of a config; none without one."""
    if config is None:
        return {}
    resolved = config.resolve(d_model=SIZE, max_seq_len=SIZE)
    found: dict[str, Any] = entry.plugin.traits(resolved).model_dump()
    return found


def cost_words(entry: Any, config: "MixerConfig") -> str:
    """Return weights and FLOPs of one layer."""
    module = entry.plugin(config, d_model=SIZE, max_seq_len=SIZE)
    parameters = sum(p.numel() for p in module.parameters() if p.requires_grad)
    flops = entry.plugin.flops(module.config, d_model=SIZE, seq_len=SIZE)
    return f"{amount(parameters)} parameters, {amount(flops)} FLOPs forward"


def summary(entry: Any, config: "MixerConfig | None") -> dict[str, Any]:
    """Return the description as JSON values."""
    return {
        "kind": entry.kind,
        "distribution": entry.distribution,
        "version": entry.version,
        "origin": entry.origin,
        "broken": entry.reason,
        "symbol": entry.plugin.symbol,
        "traits": claims_of(entry, config),
        "fields": fields_of(entry),
    }


def words(value: Any) -> str:
    """Return a claim's value in words."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def fields_of(entry: Any) -> list[dict[str, str]]:
    """Return the settings of a mixer besides its kind."""
    found = []
    config_type = entry.plugin.config_type
    properties = config_type.model_json_schema()["properties"]
    for name, field in config_type.model_fields.items():
        if name == "kind":
            continue
        default = (
            "required" if field.is_required() else field.get_default(call_default_factory=True)
        )
        found.append(
            {
                "name": name,
                "type": type_words(properties[name]),
                "default": "from the sizes" if default is None else str(default).lower(),
                "description": field.description or documented(config_type, name),
            }
        )
    return found


def type_words(schema: dict[str, Any]) -> str:
    """Return a field's type from its JSON Schema: "integer >= 1", "shift | sign"."""
    kinds = []
    for part in schema.get("anyOf", [schema]):
        if "enum" in part:
            kinds += [str(choice) for choice in part["enum"]]
        elif part.get("type") != "null":
            text = str(part.get("type", "object"))
            for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<=")):
                if key in part:
                    text += f" {sign} {part[key]}"
            kinds.append(text)
    return " | ".join(kinds)


def documented(config_type: type, name: str) -> str:
    """Return what the config's docstring says about a field, in the `Attributes:` form."""
    lines = (inspect.getdoc(config_type) or "").splitlines()
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
