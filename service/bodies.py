"""Bodies that are read as JSON text by the strict models that both sides share.

FastAPI reads JSON into Python values first; a strict model then misses the tuples that JSON cannot
write. So these are read in one step, and described in OpenAPI by hand.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema

from search.remote.wire import LARGEST, REQUESTS
from service.problems import wrong_fields

Model = TypeVar("Model", bound=BaseModel)
REF = "#/components/schemas/{model}"


def body_of(model: type[Model]) -> Callable[[Request], Awaitable[Model]]:
    """A dependency that reads a body as a model."""

    async def read(request: Request) -> Model:
        text = await request.body()
        try:
            found = model.model_validate_json(text)
        except ValidationError as error:
            details = [
                {**detail, "loc": ("body", *detail["loc"])}
                for detail in error.errors(include_url=False, include_input=False)
            ]
            raise RequestValidationError(details) from None
        refuse_large_numbers(json.loads(text))
        return found

    return read


def described_by(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a body that `body_of` reads."""
    schema = {"$ref": REF.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def schemas() -> dict[str, Any]:
    """The schemas that `described_by` refers to, for the components of OpenAPI."""
    _, document = models_json_schema(
        [(model, "validation") for model in REQUESTS], ref_template=REF
    )
    found: dict[str, Any] = document["$defs"]
    return found


def refuse_large_numbers(value: Any) -> None:
    """Refuse whole numbers that no database holds, wherever they stand.

    Raises:
        ProblemError: 422.
    """
    if isinstance(value, dict):
        for item in value.values():
            refuse_large_numbers(item)
    elif isinstance(value, list):
        for item in value:
            refuse_large_numbers(item)
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise wrong_fields([("body", "a whole number is larger than 2^63 - 1")])
