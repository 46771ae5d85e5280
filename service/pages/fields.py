"""The fields of a form, from the JSON Schema of what it fills in and the values it starts with.

Known are numbers, texts, enumerations, booleans, sections, alternatives told apart by `kind`, and
lists of them; anything else becomes a field of JSON. Settings of mixers that other packages bring
thus appear like those of the built-in ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mixers.config import MixerConfig
from mixers.registry import mixer_registry
from search.spec.study import StudySpec, default_choices, expand_notation
from search.spec.study_template import descriptions
from search.tasks.objective import OBJECTIVE
from service.pages.leaves import Schema, Type, leaf_type, text_of

KIND = "kind"
OPEN = frozenset(
    {
        *("task", "task.data", "task.data.source"),
        *("task.vocab_size", "task.seq_len", "task.n_pairs"),
        *("encoder", "encoder.d_model", "encoder.n_layers", "encoder.d_ff"),
        *("space", "space.choices"),
        *("training", "training.steps", "training.batch_size", "training.learning_rate"),
        *("tolerance", "seed"),
    }
)
"""Paths of what a first study is about; all else is folded."""


@dataclass(frozen=True)
class Field:
    """A control of a form, or a group of them.

    Attributes:
        key: Its name in the document; of a variant or an item of a list, its kind.
        type: What it holds.
        about: What it means.
        value: What it starts with: text, or whether a box is ticked.
        default: What it is when left out, as JSON; empty where it must be given.
        choices: Values to choose from.
        parts: Fields of a section, variants of a union, items of a list.
        offers: What may be added to a list.
        is_open: Whether it is shown at once.
        letter: Symbol of a mixer.
    """

    key: str
    type: Type
    about: str = ""
    value: str | bool = ""
    default: str = ""
    choices: tuple[str, ...] = ()
    parts: tuple[Field, ...] = ()
    offers: tuple[Field, ...] = ()
    is_open: bool = False
    letter: str = ""

    @property
    def shown(self) -> tuple[Field, ...]:
        """Parts that are shown at once."""
        return tuple(part for part in self.parts if part.is_open)

    @property
    def folded(self) -> tuple[Field, ...]:
        """Parts that are folded."""
        return tuple(part for part in self.parts if not part.is_open)


def study_form(document: Mapping[str, Any]) -> Field:
    """The form of a study, filled with a document; what the document leaves out has its default."""
    schema = StudySpec.model_json_schema()
    values = dict(document)
    return Form(schema["$defs"]).section("", schema, values, "", is_open=True)


def item_of(config: MixerConfig) -> Any:
    """A mixer as a document names it: its kind, with the settings that are not the default's."""
    fields = config.model_dump(mode="json", exclude_defaults=True, exclude={KIND})
    kind: str = config.kind
    return {KIND: kind, **fields} if fields else kind


def given_default(path: str, schema: Schema) -> Any:
    """What a field is when it is left out; None also where it must be given."""
    if path == "space.choices":
        return [item_of(config) for config in default_choices()]
    if path == "task":
        return "mlm"
    return schema.get("default", {} if schema.get("type") == "object" else None)


class Form:
    """Reads fields out of a schema.

    Args:
        definitions: What its references stand for.
    """

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self.definitions = definitions

    def resolved(self, schema: Schema) -> dict[str, Any]:
        """A schema with its reference, if any, in place; what stands beside it counts more."""
        reference = schema.get("$ref")
        if reference is None:
            return dict(schema)
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return {**self.definitions[reference.rpartition("/")[2]], **beside}

    def alternatives(self, schema: Schema) -> Iterator[dict[str, Any]]:
        """The alternatives of a schema, nested ones too; null is none."""
        found = self.resolved(schema)
        among = found.get("anyOf") or found.get("oneOf")
        if among is None:
            if found.get("type") != "null":
                yield found
            return
        for one in among:
            yield from self.alternatives(one)

    def section(
        self, key: str, schema: Schema, values: Any, path: str, *, is_open: bool = False
    ) -> Field:
        """A group with a field for each property; a mixer's are explained by its class."""
        values = values if isinstance(values, Mapping) else {}
        words = mixer_words(key)
        required = schema.get("required", ())
        parts = tuple(
            self.field(
                name,
                part,
                values.get(name),
                f"{path}.{name}" if path else name,
                about=part.get("description") or words.get(name, ""),
                is_required=name in required,
            )
            for name, part in schema["properties"].items()
            if "const" not in part
        )
        about = "" if words else schema.get("description", "").partition("\n\n")[0]
        plugin = mixer_registry.usable().get(key)
        letter = plugin.symbol if plugin is not None and words else ""
        return Field(key, "section", about, parts=parts, is_open=is_open, letter=letter)

    def field(
        self, key: str, schema: Schema, value: Any, path: str, *, about: str, is_required: bool
    ) -> Field:
        """The field of one property."""
        default = given_default(path, schema)
        value = default if value is None else value
        is_open = path in OPEN
        alternatives = list(self.alternatives(schema))
        variants = {kind: one for one in alternatives if (kind := kind_of(one)) is not None}
        one = alternatives[0]
        if variants:
            return self.union(key, about, alternatives, variants, value, default, path)
        if len(alternatives) == 1 and "properties" in one:
            return self.section(key, one | {"description": about}, value, path, is_open=is_open)
        if one.get("type") == "array" and (offers := self.offers(one["items"])):
            return self.list_of(key, about, offers, value, default, path)
        kind = leaf_type(alternatives)
        choices = tuple(str(choice) for choice in one.get("enum", ()))
        if choices and value is None:
            choices = ("", *choices)
        left_out = "" if is_required else json.dumps(default)
        shown: str | bool = bool(value) if kind == "flag" else text_of(value, kind)
        return Field(key, kind, about, shown, left_out, choices, is_open=is_open)

    def union(
        self,
        key: str,
        about: str,
        alternatives: Sequence[Schema],
        variants: Mapping[str, Schema],
        value: Any,
        default: Any,
        path: str,
    ) -> Field:
        """Alternatives: names alone, and kinds with settings of their own."""
        names = [name for one in alternatives for name in one.get("enum", ())]
        chosen, values = kind_and_values(value)
        kinds = [name for name in dict.fromkeys([*names, *variants]) if name != OBJECTIVE]
        parts = tuple(
            self.section(kind, variants[kind], values if kind == chosen else {}, path)
            for kind in kinds
            if kind in variants
        )
        return Field(
            key,
            "union",
            about,
            chosen,
            json.dumps(default),
            tuple(kinds),
            parts,
            is_open=path in OPEN,
        )

    def offers(self, items: Schema) -> dict[str, Schema]:
        """What the items of a list may be, by kind; one kind without a name where all are alike."""
        found = list(self.alternatives(items))
        variants: dict[str, Schema] = {
            kind: one for one in found if (kind := kind_of(one)) is not None
        }
        if not variants and len(found) == 1 and "properties" in found[0]:
            return {"": found[0]}
        return variants

    def list_of(
        self,
        key: str,
        about: str,
        offers: Mapping[str, Schema],
        value: Any,
        default: Any,
        path: str,
    ) -> Field:
        """A list to which items are added."""
        items = value if isinstance(value, list | tuple) else []
        if "" not in offers:
            expanded = expand_notation(items)
            items = [item_of(x) if isinstance(x, MixerConfig) else x for x in expanded]
        inside = f"{path}[]"
        parts = []
        for item in items:
            kind, values = ("", item) if "" in offers else kind_and_values(item)
            if kind in offers:
                parts.append(self.section(kind, offers[kind], values, inside))
        return Field(
            key,
            "list",
            about,
            default=json.dumps(default) if default is not None else "",
            choices=tuple(offers),
            parts=tuple(parts),
            offers=tuple(self.section(kind, one, {}, inside) for kind, one in offers.items()),
            is_open=path in OPEN,
        )


def mixer_words(kind: str) -> dict[str, str]:
    """What the settings of a mixer mean; empty where no mixer has that kind."""
    plugin = mixer_registry.usable().get(kind)
    return {} if plugin is None else descriptions(plugin.config_type)


def kind_of(schema: Schema) -> str | None:
    """The kind that a schema is for; None where it has none."""
    kind: str | None = schema.get("properties", {}).get(KIND, {}).get("const")
    return kind


def kind_and_values(value: Any) -> tuple[str, dict[str, Any]]:
    """The kind of a value and its settings; a bare name is a kind."""
    if isinstance(value, Mapping):
        return str(value.get(KIND, "")), {name: v for name, v in value.items() if name != KIND}
    return (value, {}) if isinstance(value, str) else ("", {})
