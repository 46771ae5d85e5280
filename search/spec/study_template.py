"""A commented study file: every setting with its meaning; reading it back gives the same study."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from mixers.config import MixerConfig, canonical_value
from search.spec.study_file import to_yaml_text

if TYPE_CHECKING:
    from search.spec.study import StudySpec

WIDTH = 92
INDENT = "  "
HEADER = """\
# A study: which token mixer should each layer use?
# Run it:      search run study.yaml --budget 20
# Change one:  search run study.yaml --set training.steps=200
# Every setting is written out; one whose line is removed has its default.
"""
CHOICE_NOTE = "A choice: its kind, or kind(field=value, ...); `search mixers list` names them all."


def commented_yaml(spec: StudySpec) -> str:
    """Writes a study as a file for people; `load_study` of the text gives the same study."""
    return HEADER + "\n".join(_section(spec, 0, spec.mixer_sizes)) + "\n"


def _section(model: BaseModel, depth: int, sizes: dict[str, int]) -> Iterator[str]:
    comments = descriptions(type(model))
    for name in type(model).model_fields:
        value = getattr(model, name)
        if depth == 0:
            yield ""
        if text := comments.get(name):
            yield from _comment(text, depth)
        yield from _setting(name, value, depth, sizes)


def _setting(name: str, value: Any, depth: int, sizes: dict[str, int]) -> Iterator[str]:
    pad = INDENT * depth
    if isinstance(value, BaseModel) and not isinstance(value, MixerConfig):
        yield f"{pad}{name}:"
        yield from _section(value, depth + 1, sizes)
    elif isinstance(value, tuple) and value and all(isinstance(v, MixerConfig) for v in value):
        yield from _comment(CHOICE_NOTE, depth)
        yield f"{pad}{name}:"
        yield from (f"{pad}{INDENT}- {_choice(v, sizes)}" for v in value)
    else:
        yield f"{pad}{name}: {to_yaml_text(canonical_value(value))}"


def _choice(config: MixerConfig, sizes: dict[str, int]) -> str:
    from mixers.notation import format_layer

    text = format_layer(config, **sizes)
    return text if re.fullmatch(r"[\w.\-]+(\([\w.\-=, ]*\))?", text) else to_yaml_text(text)


def _comment(text: str, depth: int) -> Iterator[str]:
    prefix = f"{INDENT * depth}# "
    yield from textwrap.wrap(
        text, WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False
    )


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Returns the meaning of each field: its description, or its line in the class docstring."""
    documented = _attributes(inspect.getdoc(model) or "")
    return {
        name: " ".join((field.description or documented.get(name, "")).split())
        for name, field in model.model_fields.items()
    }


def _attributes(docstring: str) -> dict[str, str]:
    _, _, section = docstring.partition("Attributes:\n")
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        entry = re.match(r" {4}(\w+): (.*)", line)
        if entry:
            name = entry[1]
            found[name] = entry[2]
        elif line.startswith(" " * 8) and name:
            found[name] += f" {line.strip()}"
        elif line.strip():
            break
    return found
