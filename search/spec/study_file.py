"""Study files: YAML 1.2 in, with line numbers in messages, and a commented file out."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from search.errors import InputError

if TYPE_CHECKING:
    from ruamel.yaml.representer import SafeRepresenter

    from search.spec.study import StudySpec

FIRST_LINE_OF_ERROR = 240
DEFAULT_TASK = "mlm"
PLAIN_START = re.compile(r"[\w./]")
UNICODE_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]")


def load_study(path: str | PathLike[str], overrides: Iterable[str] = ()) -> StudySpec:
    """Reads a study file.

    Args:
        path: A YAML 1.2 (or JSON) file.
        overrides: ``path=value`` settings that replace those of the file.

    Raises:
        InputError: The file cannot be read, is no YAML, or is no valid study; one line per
            problem, with the field's path and the line of the file.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file in UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    marked = parse_yaml(text, source=str(path))
    document = plain(marked)
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise InputError(f"{path}: a study file is a mapping of settings, not {document!r:.60}")
    overrides = tuple(overrides)
    # A line of the file would mislead where a setting came from elsewhere.
    lines = None if overrides else marked
    return study_from(with_overrides(document, overrides), source=str(path), marked=lines)


def study_from(document: Mapping[str, Any], *, source: str = "", marked: Any = None) -> StudySpec:
    """Validates a study document.

    Args:
        document: Plain values.
        source: Named at the start of each line of an error, if given.
        marked: The same document as `parse_yaml` returned it, for line numbers.

    Raises:
        InputError: One line per problem: path, what is wrong, the nearest valid name.
    """
    from mixers.explain import problem_line
    from search.spec.study import StudySpec

    try:
        return StudySpec.model_validate(dict(document))
    except ValidationError as error:
        lines = []
        for detail in error.errors(include_url=False):
            place = _place(source, _line_of(detail, marked))
            lines.append(place + problem_line(detail, StudySpec))
        raise InputError("\n".join(lines)) from None


def parse_yaml(text: str, *, source: str = "settings") -> Any:
    """Reads YAML 1.2; duplicate keys are refused. Mappings keep their line numbers.

    Raises:
        InputError: The text is no YAML, with line and column.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = (error.problem or "not valid YAML").splitlines()[0]
        raise InputError(f"{source}{where}: {problem}") from None
    except YAMLError as error:
        first = (str(error).splitlines() or ["not valid YAML"])[0]
        raise InputError(f"{source}: {first[:FIRST_LINE_OF_ERROR]}") from None


def plain(value: Any) -> Any:
    """Returns a parsed YAML value as plain dicts, lists and scalars."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if type(value).__name__ == "ScalarBoolean" or isinstance(value, bool):
        return bool(value)
    for scalar in (int, float, str):
        if isinstance(value, scalar):
            return scalar(value)
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    return value


def with_overrides(document: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Returns a copy of a study document with ``path=value`` settings put in.

    The path is dotted (``training.steps``; numbers index lists); the value is YAML. Sections that
    the document does not have are made; unknown names are left for validation to refuse.

    Raises:
        InputError: A setting has no ``=``, or its path leads through a plain value.
    """
    result: dict[str, Any] = plain(document)
    for setting in overrides:
        path, equals, text = setting.partition("=")
        path = path.strip()
        if not equals or not path or not all(path.split(".")):
            raise InputError(
                f"--set {setting!r}: expected path=value, for example training.steps=200"
            )
        value = plain(parse_yaml(text, source=f"--set {setting!r}"))
        _put(result, path.split("."), value, setting)
    return result


def _put(target: Any, path: Sequence[str], value: Any, setting: str) -> None:
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if isinstance(target, dict):
            if not last and target.get(part) is None:
                # A section that is not written out has its default; that of a task has a kind.
                target[part] = {"kind": DEFAULT_TASK} if path[: depth + 1] == ["task"] else {}
            if not last and isinstance(target[part], str):
                # A bare name is short for a section of that kind, as in `task: mlm`.
                target[part] = {"kind": target[part]}
            key: str | int = part
        elif isinstance(target, list) and part.isdigit() and int(part) < len(target):
            key = int(part)
            if not last and isinstance(target[key], str):
                target[key] = {"kind": target[key]}
        else:
            before = ".".join(path[:depth])
            what = f"{before} has no entry {part!r}" if before else "no mapping"
            raise InputError(f"--set {setting!r}: {what}")
        if last:
            target[key] = value
        else:
            target = target[key]


def _line_of(detail: ErrorDetails, marked: Any) -> int | None:
    """Returns the line of the deepest part of an error's path that the file has."""
    line: int | None = None
    here = marked
    for part in detail["loc"]:
        positions = getattr(getattr(here, "lc", None), "data", None)
        if isinstance(positions, dict) and part in positions:
            line = positions[part][0] + 1
            here = here[part]
    return line


def _place(source: str, line: int | None) -> str:
    if not source:
        return ""
    return f"{source}, line {line}: " if line else f"{source}: "


def to_yaml_text(value: Any) -> str:
    """Writes one value as YAML on one line, which reads back as the same value."""
    from ruamel.yaml import YAML

    out = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = quoting()
    yaml.default_flow_style = True
    yaml.width = 10_000
    # As they are, some of these would be read back as line breaks; escapes survive.
    yaml.allow_unicode = not UNICODE_BREAKS.search(json.dumps(value, ensure_ascii=False))
    yaml.dump(value, out)
    return out.getvalue().removesuffix("...\n").strip()


def yaml_file(document: Mapping[str, Any]) -> str:
    """Writes a mapping as a YAML file: a line for each setting, sections indented."""
    return "".join(f"{line}\n" for line in _lines(document, ""))


def _lines(document: Mapping[str, Any], pad: str) -> Iterator[str]:
    for key, value in document.items():
        name = to_yaml_text(key)
        if isinstance(value, Mapping) and value:
            yield f"{pad}{name}:"
            yield from _lines(value, f"{pad}  ")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            yield f"{pad}{name}:"
            yield from (f"{pad}  - {to_yaml_text(item)}" for item in value)
        else:
            yield f"{pad}{name}: {to_yaml_text(value)}"


@cache
def quoting() -> type[SafeRepresenter]:
    """Returns what writes values, and quotes texts that begin with a sign.

    Bare between brackets, `?0` and `:0` would be read as keys.
    """
    from ruamel.yaml.representer import SafeRepresenter

    class Quoting(SafeRepresenter):
        def represent_str(self, data: str) -> Any:
            style = None if PLAIN_START.match(data) else '"'
            return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Quoting.add_representer(str, Quoting.represent_str)
    return Quoting
