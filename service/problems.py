"""Errors over HTTP: one shape (RFC 9457, `application/problem+json`) with the field's path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from mixers.errors import MixerError
from mixers.explain import problem_line, valid_keys
from mixers.registry import suggestion
from search.errors import InputError, NothingThereError, SearchError, StoreError

MEDIA_TYPE = "application/problem+json"
MOST_FIELDS = 50
MEANINGS = {
    400: "The request cannot be read.",
    401: "A token is needed, or the one given is not valid.",
    403: "The token's role does not allow this, or the request comes from another site.",
    404: "There is no such thing.",
    405: "The method is not allowed here.",
    408: "The body did not arrive in time.",
    409: "It contradicts what is stored.",
    413: "The body is too large.",
    415: "The body is not of a type that is read here.",
    416: "The range lies outside the file.",
    422: "The request is well formed and wrong; `errors` names the fields.",
    429: "Too many requests of this kind; try again later.",
    503: "The store cannot be used now.",
}
EVERY = (400, 401, 403, 404, 405, 422, 429, 503)
"""Problems that every route behind a token may answer with."""
WITH_BODY = (408, 413, 415)
"""Those of routes that take a body, beside them."""


class FieldProblem(BaseModel):
    """What is wrong with one field of a request."""

    path: str = Field(description="Path of the field, with dots.", examples=["spec.training.steps"])
    message: str = Field(description="What is wrong.", examples=["unknown key 'stepz'"])


class ProblemDocument(BaseModel):
    """An error, in the form of RFC 9457."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "there is no study 'demo'; the list of studies names all",
                    "instance": "/api/v1/studies/demo",
                    "errors": [],
                }
            ]
        }
    )

    type: str = Field(
        description="`about:blank`: the title says it all; `urn:mixsearch:lease-lost`: the trial "
        "is not the worker's any more."
    )
    title: str = Field(description="The status in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong and what to do, in one line.")
    instance: str = Field(description="Path of the request.")
    errors: list[FieldProblem] = Field(description="Fields that are wrong.")


class ProblemError(Exception):
    """An error that a client is told as a problem document.

    Args:
        status: HTTP status.
        detail: One line.
        errors: Path and message of each wrong field.
        headers: Further headers.
        kind: Type of the problem, for programs that tell some of one status apart.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        errors: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        kind: str = "about:blank",
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status = status
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})

    def document(self, instance: str) -> dict[str, Any]:
        """The body."""
        return {
            "type": self.kind,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "errors": [{"path": path, "message": message} for path, message in self.errors],
        }

    def response(self, instance: str) -> JSONResponse:
        """The response for a program."""
        return JSONResponse(
            self.document(instance), self.status, headers=self.headers, media_type=MEDIA_TYPE
        )

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with this, from a middleware."""
        await self.response(scope["path"])(scope, receive, send)


def schemas() -> dict[str, Any]:
    """The schemas that `documented` refers to, for the components of OpenAPI."""
    document = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**document.pop("$defs"), "ProblemDocument": document}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The entries of OpenAPI for error statuses of a route."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    return {status: {"description": MEANINGS[status], "content": content} for status in statuses}


def errors(*more: int) -> dict[int | str, dict[str, Any]]:
    """The documented problems of a route behind a token."""
    return documented(*EVERY, *more)


def from_search(error: SearchError | MixerError) -> ProblemError:
    """Say what an error of the library means over HTTP."""
    if isinstance(error, NothingThereError):
        return ProblemError(404, one_line(error))
    if isinstance(error, StoreError):
        return ProblemError(503, one_line(error), headers={"Retry-After": "5"})
    if isinstance(error, InputError | MixerError):
        return ProblemError(422, one_line(error))
    return ProblemError(409, one_line(error))


def from_validation(error: ValidationError, model: Any, *prefix: str) -> ProblemError:
    """Name every wrong field of a document, with the nearest valid name."""
    found = []
    for detail in error.errors(include_url=False)[:MOST_FIELDS]:
        path = ".".join([*prefix, *(str(part) for part in detail["loc"])])
        line = problem_line(detail, model)
        found.append((path, line.partition(": ")[2] if ": " in line else line))
    return wrong_fields(found)


def wrong_fields(found: Sequence[tuple[str, str]]) -> ProblemError:
    """The problem of a request with wrong fields."""
    path, message = found[0]
    more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
    return ProblemError(422, f"{path or 'document'}: {message}{more}", found)


def from_request(error: RequestValidationError, model: Any = None) -> ProblemError:
    """Name every wrong parameter or field; the values themselves are not repeated.

    Args:
        error: What validation raised.
        model: That of the body; with it, unknown keys get the nearest valid one.
    """
    found = []
    for detail in error.errors()[:MOST_FIELDS]:
        if detail["type"] == "json_invalid":
            return ProblemError(400, f"the body is not JSON: {detail['ctx']['error']}")
        place, *path = detail["loc"]
        named = path if place == "body" and path else [place, *path]
        message = str(detail["msg"])
        if detail["type"] == "extra_forbidden":
            keys = valid_keys(model, path[:-1])
            message = f"unknown key {path[-1]!r}"
            message += f"; {suggestion(str(path[-1]), keys)}" if keys else ""
        found.append((".".join(str(part) for part in named), message))
    return wrong_fields(found)


def one_line(error: BaseException) -> str:
    """The message of an error without line ends."""
    lines = (" ".join(line.split()) for line in str(error).splitlines())
    return "; ".join(line for line in lines if line)


def answer(request: Request, problem: ProblemError) -> Response:
    """Tell a client what is wrong: a program as JSON, a person by the application's page."""
    page = getattr(request.app.state, "problem_page", None)
    if page is not None and not request.url.path.startswith("/api/"):
        response: Response = page(request, problem)
        return response
    return problem.response(request.url.path)


def install(app: FastAPI) -> None:
    """Make an application answer every error in this form."""

    @app.exception_handler(ProblemError)
    async def on_problem(request: Request, error: ProblemError) -> Response:
        return answer(request, error)

    @app.exception_handler(SearchError)
    @app.exception_handler(MixerError)
    async def on_search(request: Request, error: SearchError) -> Response:
        return answer(request, from_search(error))

    @app.exception_handler(RequestValidationError)
    async def on_validation(request: Request, error: RequestValidationError) -> Response:
        body = getattr(request.scope["route"], "body_field", None)
        model = None if body is None else body.field_info.annotation
        return answer(request, from_request(error, model))

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        detail = MEANINGS.get(error.status_code, str(error.detail))
        headers = dict(error.headers or {})
        return answer(request, ProblemError(error.status_code, detail, headers=headers))
