"""Compact notation: `kind[(field=value, ...)][*count]`, comma-separated."""

import json
import re
from collections.abc import Iterable

from pydantic import TypeAdapter, ValidationError

from mixers.config import MixerConfig, canonical_value
from mixers.errors import SpecError
from mixers.explain import explain
from mixers.union import AnyMixer

LAYER = re.compile(
    r"\s*(?P<kind>[A-Za-z0-9][\w.\-]*)\s*(?P<open>\()?",
)
FIELD = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*=\s*")
COUNT = re.compile(r"\s*\*\s*(?P<count>\d+)")
MOST_LAYERS = 10_000
"""A longer count is a slip of the hand, and would fill the memory before anything refused it."""
WORD = re.compile(r"[A-Za-z_][\w.\-]*")
WORDS = {"true": True, "false": False, "null": None}


def parse_architecture(text: str) -> tuple[MixerConfig, ...]:
    """Read an architecture such as `"sepconv(kernel_size=9)*2, attention*10"`.

    Values are JSON, bare words count as text. Returns one config per layer, input side first.

    Raises:
        SpecError: With the place of the first fault.
    """
    adapter: TypeAdapter[MixerConfig] = TypeAdapter(AnyMixer)
    layers: list[MixerConfig] = []
    at = 0
    while True:
        start = at
        found = LAYER.match(text, at)
        if found is None:
            raise fault(text, at, "a mixer's name")
        at = found.end()
        document: dict[str, object] = {"kind": found["kind"]}
        if found["open"]:
            fields, at = parse_fields(text, at)
            document.update(fields)
        count = COUNT.match(text, at)
        at = count.end() if count else at
        times = int(count["count"][:9]) if count else 1
        if not 1 <= times <= MOST_LAYERS:
            raise fault(text, at, f"a count from 1 to {MOST_LAYERS}")
        try:
            config = adapter.validate_json(json.dumps(document))
        except ValidationError as error:
            lines = "; ".join(line.removeprefix("document: ") for line in explain(error, AnyMixer))
            raise SpecError(f"{text[start:at].strip()!r}: {lines}") from None
        layers += [config] * times
        rest = text[at:].lstrip()
        if not rest:
            return tuple(layers)
        at = len(text) - len(rest)
        if text[at] != ",":
            raise fault(text, at, "',' or the end")
        at += 1


def parse_fields(text: str, at: int) -> tuple[dict[str, object], int]:
    """Read `field=value, ...)` from `at`; returns the fields and the place after `)`."""
    fields: dict[str, object] = {}
    while True:
        name = FIELD.match(text, at)
        if name is None:
            raise fault(text, at, "field=value")
        if name["name"] in fields or name["name"] == "kind":
            raise fault(text, at, f"each field once, not {name['name']!r} again")
        fields[name["name"]], at = parse_value(text, name.end())
        rest = text[at:].lstrip()
        at = len(text) - len(rest)
        if rest[:1] == ")":
            return fields, at + 1
        if rest[:1] != ",":
            raise fault(text, at, "',' or ')'")
        at += 1


def parse_value(text: str, at: int) -> tuple[object, int]:
    """Read one value from `at`; returns it and the place after it."""
    word = WORD.match(text, at)
    if word is not None:
        return WORDS.get(word[0], word[0]), word.end()
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except json.JSONDecodeError:
        raise fault(text, at, "a value") from None
    return value, end


def fault(text: str, at: int, expected: str) -> SpecError:
    """Return the error for a place where something else was expected."""
    return SpecError(
        f"architecture {text!r}: expected {expected} at character {at + 1}; "
        'the form is kind(field=value, ...)*count, as in "sepconv*2, attention(rotary=true)"'
    )


def format_architecture(
    layers: Iterable[MixerConfig], *, d_model: int | None = None, max_seq_len: int | None = None
) -> str:
    """Write configs in compact notation; `parse_architecture` reads it back.

    Defaults are left out; with the sizes given, so are values that a default resolves to there.
    """
    runs: list[tuple[str, int]] = []
    for config in layers:
        text = format_layer(config, d_model=d_model, max_seq_len=max_seq_len)
        if runs and runs[-1][0] == text:
            runs[-1] = (text, runs[-1][1] + 1)
        else:
            runs.append((text, 1))
    return ", ".join(text if count == 1 else f"{text}*{count}" for text, count in runs)


def format_layer(config: MixerConfig, *, d_model: int | None, max_seq_len: int | None) -> str:
    """Write one config."""
    kept = []
    for name in type(config).model_fields:
        value = getattr(config, name)
        if name == "kind" or is_default(config, name, d_model, max_seq_len):
            continue
        kept.append(f"{name}={format_value(canonical_value(value))}")
    return f"{config.kind}({', '.join(kept)})" if kept else config.kind


def is_default(
    config: MixerConfig, name: str, d_model: int | None, max_seq_len: int | None
) -> bool:
    """Whether leaving the field out would give the same value back."""
    field = type(config).model_fields[name]
    if field.is_required():
        return False
    default = field.get_default(call_default_factory=True)
    if d_model is not None and max_seq_len is not None:
        unset = config.model_copy(update={name: default})
        default = getattr(unset.resolve(d_model=d_model, max_seq_len=max_seq_len), name)
    return bool(getattr(config, name) == default)


def format_value(value: object) -> str:
    """Write one value: words bare where that reads back the same, JSON otherwise."""
    if isinstance(value, str) and WORD.fullmatch(value) and value not in WORDS:
        return value
    return json.dumps(value)


def kind_of(notation: str) -> str:
    """Return the mixer's kind in a notation: ``attention(rotary=true)`` -> ``attention``."""
    return notation.split("(", 1)[0]
