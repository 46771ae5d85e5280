"""Validation errors in one line each: the full path, what is wrong, the nearest valid name."""

import re
import types
import typing
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from mixers.errors import SpecError
from mixers.registry import suggestion
from mixers.union import RegistryUnion

ModelT = TypeVar("ModelT", bound=BaseModel)


def load(model: type[ModelT], document: Any) -> ModelT:
    """Validate a document (mapping, JSON text or model).

    Raises:
        SpecError: With one line per problem, as `explain` writes them.
    """
    try:
        if isinstance(document, str | bytes):
            return model.model_validate_json(document)
        return model.model_validate(document)
    except ValidationError as error:
        raise SpecError("\n".join(explain(error, model))) from None


def explain(error: ValidationError, model: Any = None) -> list[str]:
    """Return one line per problem of a validation error.

    Args:
        error: What validation raised.
        model: The model, or annotation, that was validated; with it, unknown keys get the nearest
            valid one.
    """
    return [problem_line(detail, model) for detail in error.errors(include_url=False)]


def problem_line(detail: ErrorDetails, model: Any) -> str:
    """Return the line of one problem."""
    loc = detail["loc"]
    path = ".".join(str(part) for part in loc) or "document"
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            keys = valid_keys(model, loc[:-1])
            hint = f"; {suggestion(str(loc[-1]), keys)}" if keys else ""
            return f"{path}: unknown key {str(loc[-1])!r}{hint}"
        case "union_tag_invalid":
            tag = str(context["tag"])
            known = re.findall(r"'([^']*)'", str(context["expected_tags"]))
            return f"{path}: unknown kind {tag!r}; {suggestion(tag, known)}"
        case "union_tag_not_found":
            return (
                f"{path}: needs the key {context['discriminator']} (got {short(detail['input'])})"
            )
        case "literal_error" if "'" in str(context["expected"]):
            known = re.findall(r"'([^']*)'", str(context["expected"]))
            hint = suggestion(str(detail["input"]), known)
            return f"{path}: {short(detail['input'])} is not valid; {hint}"
        case "missing":
            return f"{path}: missing; it must be given"
        case "value_error" | "does_not_fit" | "broken_plugin":
            return f"{path}: {detail['msg'].removeprefix('Value error, ')}"
        case _:
            return f"{path}: {detail['msg']} (got {short(detail['input'])})"


def short(value: Any) -> str:
    """Return a value's text, cut to one readable line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def valid_keys(model: Any, loc: Sequence[int | str]) -> list[str]:
    """Return the keys a document may have at a path, or [] where that is not clear."""
    here: Any = model
    for part in loc:
        here = step(here, part)
    if isinstance(here, type) and issubclass(here, BaseModel):
        return [field.alias or name for name, field in here.model_fields.items()]
    return []


def step(here: Any, part: int | str) -> Any:
    """Return the annotation one path element further, or None where it is not clear."""
    if isinstance(here, type) and issubclass(here, BaseModel):
        field = here.model_fields.get(str(part))
        if field is None:
            return None
        unions = [mark for mark in field.metadata if isinstance(mark, RegistryUnion)]
        return unions[0] if unions else field.annotation
    if isinstance(here, RegistryUnion):
        return here.config_types().get(str(part))
    origin, arguments = typing.get_origin(here), typing.get_args(here)
    if origin is typing.Annotated:
        unions = [mark for mark in arguments[1:] if isinstance(mark, RegistryUnion)]
        return step(unions[0] if unions else arguments[0], part)
    if origin in (typing.Union, types.UnionType):
        members = [argument for argument in arguments if argument is not type(None)]
        return step(members[0], part) if len(members) == 1 else member_of(members, part)
    if origin in (tuple, list) and arguments:
        return arguments[0]
    if origin is dict and len(arguments) == 2:
        return arguments[1]
    return None


def member_of(members: Sequence[Any], tag: int | str) -> Any:
    """Return the member of a discriminated union that a path element stands for."""
    for member in members:
        marks = typing.get_args(member)
        if any(isinstance(mark, Tag) and mark.tag == tag for mark in marks):
            return marks[0]
        kind = getattr(member, "model_fields", {}).get("kind")
        if kind is not None and tag in typing.get_args(kind.annotation):
            return member
    return None
