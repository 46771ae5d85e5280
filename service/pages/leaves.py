"""Fields of a form that hold one value: of which type they are, and the value as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Type = Literal[
    "integer",
    "number",
    "text",
    "choice",
    "flag",
    "lines",
    "numbers",
    "json",
    "section",
    "union",
    "list",
]
Schema = Mapping[str, Any]
NUMBERS = ("integer", "number")
TYPES: dict[str, Type] = {
    "integer": "integer",
    "number": "number",
    "string": "text",
    "boolean": "flag",
}


def leaf_type(alternatives: Sequence[Schema]) -> Type:
    """What a field that is no group holds."""
    one = alternatives[0]
    if len(alternatives) > 1:
        return "json"
    if "enum" in one:
        return "choice"
    if one.get("type") == "array":
        item = one.get("items", {}).get("type")
        return "lines" if item == "string" else "numbers" if item in NUMBERS else "json"
    return TYPES.get(str(one.get("type")), "json")


def text_of(value: Any, kind: Type) -> str:
    """A value as the text of its field."""
    if value is None:
        return ""
    if kind == "lines" and isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    if kind == "numbers" and isinstance(value, list | tuple):
        return ", ".join(map(json.dumps, value))
    return value if isinstance(value, str) else json.dumps(value)
