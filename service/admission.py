"""What a study that comes over HTTP may name: registered mixers and tasks, text in the data root.

A worker reads what a study names with its own rights, so a spec from outside must not name files
of the machine, nor a function of somebody's script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from search.data.spec import EMBEDDED
from search.spec.study import StudySpec
from search.tasks.objective import OBJECTIVE
from service.problems import from_validation, wrong_fields
from service.settings import ServiceSettings

NAMES_FILES = frozenset({"source", "tokenizer"})
HUB_ID = re.compile(r"[A-Za-z0-9]([\w-]|\.(?!\.))*(/[A-Za-z0-9]([\w-]|\.(?!\.))*)?", re.ASCII)
PATH_SIGNS = ("/", "\\", "~", "..", "\0")


def admitted(spec: Mapping[str, Any], settings: ServiceSettings) -> StudySpec:
    """Return the study of a document that came over HTTP.

    Raises:
        ProblemError: 422 with the path of every wrong field.
    """
    try:
        study = StudySpec.model_validate(dict(spec))
    except ValidationError as error:
        raise from_validation(error, StudySpec, "spec") from None
    if study.task.kind == OBJECTIVE:
        raise wrong_fields([("spec.task.kind", "a function of a script runs in that script alone")])
    found = [
        (f"spec.task.{path}", problem)
        for path, key, text in texts(study.task.model_dump())
        if (problem := refusal(key, text, settings)) is not None
    ]
    if found:
        raise wrong_fields(found)
    return study


def texts(value: Any, path: str = "", key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield path, key and text of every string in a document."""
    if isinstance(value, str):
        yield path, key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from texts(item, f"{path}.{name}" if path else str(name), str(name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from texts(item, f"{path}.{index}", key)


def refusal(key: str, text: str, settings: ServiceSettings) -> str | None:
    """Why a text of a task may not come from outside; None where it may."""
    names_file = key in NAMES_FILES
    if text == EMBEDDED or not (names_file or any(sign in text for sign in PATH_SIGNS)):
        return None
    if settings.data is not None and is_inside(Path(text), settings.data):
        return None
    if names_file and settings.hub and HUB_ID.fullmatch(text):
        return None
    where = f"{EMBEDDED!r}"
    if settings.data is not None:
        where += f" or an absolute path below {settings.data}"
    return f"{text[:80]!r} may not be named over HTTP; name {where}"


def is_inside(path: Path, root: Path) -> bool:
    """Whether an absolute path lies below a folder, after links are followed."""
    try:
        return path.is_absolute() and path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):
        return False
