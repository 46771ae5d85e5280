"""The form that submits a study: fields and text, checked as one types, planned, submitted."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from mixers.errors import MixerError
from mixers.registry import mixer_registry
from search.errors import InputError, SearchError
from search.spec.budget import EXAMPLES
from service import schemas
from service.deps import AccessDep, SettingsDep, StoreDep, Submitter
from service.pages.fields import study_form
from service.pages.study_text import START, document_of, study_text, text_of
from service.pages.tables import study_href
from service.pages.templating import fragment, render
from service.problems import FieldProblem, ProblemError, from_search, wrong_fields
from service.routes import studies
from service.studies import find

router = APIRouter(include_in_schema=False)
Refused = (ProblemError, SearchError, MixerError, ValidationError)
RefusedError = ProblemError | SearchError | MixerError | ValidationError
NAME_RULE = "it may hold letters, digits, blanks and . _ + - and begins with one of the first two"


class Draft(schemas.Request):
    """What the form holds."""

    text: Annotated[str, Field(max_length=200_000)]
    """The study as a file: what is planned and submitted."""
    spec: dict[str, Any] | None = None
    """What the fields hold, where one of them changed; a check then answers with its text."""
    name: Annotated[str, Field(max_length=200)] = ""
    budget: Annotated[str, Field(max_length=40)] = ""


class Checked(BaseModel):
    """What a check found."""

    valid: bool = False
    text: str
    """The study as a file."""
    shown: str
    """What the page shows of it: the layers, or what is wrong line by line."""
    errors: list[FieldProblem] = []
    """What is wrong, by the path of its field."""
    fields: str = ""
    """The fields that hold a valid text."""


@router.get("/submit")
def form(
    store: StoreDep, user: Submitter, origin: Annotated[str, Query(alias="from")] = ""
) -> HTMLResponse:
    """The form, with a small study in it or an earlier one."""
    if origin:
        spec = find(store, origin).spec
        text, fields = study_text(spec), study_form(spec)
    else:
        text, fields = START, study_form(document_of(START))
    return render(
        "submit.html", user, "submit", text=text, form=fields, examples=EXAMPLES, origin=origin
    )


@router.post("/submit/check")
def check(draft: Draft, store: StoreDep, settings: SettingsDep, user: Submitter) -> Checked:
    """What the draft means, or all that is wrong with it: both are answers to a check."""
    text = draft.text if draft.spec is None else text_of(draft.spec)
    try:
        document = document_of(text) if draft.spec is None else draft.spec
        spec = schemas.Spec(name=draft.name or None, spec=document)
        found = studies.validate(spec, store, settings, user)
        studies.checked_budget(draft.budget or None)
    except Refused as error:
        problem = _problem(error)
        errors = [FieldProblem(path=path, message=words) for path, words in problem.errors]
        return Checked(text=text, shown=_refused(error, problem), errors=errors)
    shown = fragment("submit_check.html", found=found, preview=_preview(found.layers))
    fields = ""
    if draft.spec is None:
        fields = fragment("submit_fields.html", form=study_form(document))
    return Checked(valid=True, text=text, shown=shown, fields=fields)


@router.post("/submit/plan")
def plan(draft: Draft, store: StoreDep, settings: SettingsDep, user: Submitter) -> HTMLResponse:
    """What the budget buys: trials, hours, memory, and what can be decided."""
    try:
        asked = schemas.PlanRequest(
            name=draft.name or None, spec=document_of(draft.text), budget=draft.budget
        )
        made = studies.plan(asked, store, settings, user)
    except Refused as error:
        return _refusal(error)
    return HTMLResponse(fragment("submit_plan.html", words=made.words))


@router.post("/submit")
def submit(
    draft: Draft,
    request: Request,
    response: Response,
    store: StoreDep,
    settings: SettingsDep,
    access: AccessDep,
    user: Submitter,
) -> Response:
    """Stores the study for the workers, and says where its page is."""
    try:
        body = schemas.Submission(
            name=draft.name or None,
            spec=document_of(draft.text),
            budget=draft.budget or None,
        )
        made = studies.submit(body, request, response, store, settings, access, user)
    except Refused as error:
        return _refusal(error)
    return JSONResponse({"page": study_href(made.name, made.id)}, response.status_code)


def _problem(error: RefusedError) -> ProblemError:
    """A refusal with the fields that are wrong."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, SearchError | MixerError):
        return from_search(error)
    return wrong_fields([_rule(detail) for detail in error.errors()])


def _refused(error: RefusedError, problem: ProblemError) -> str:
    """Every problem of a draft, one a line."""
    lines = [f"{path}: {message}" if path else message for path, message in problem.errors]
    if isinstance(error, InputError):
        lines = str(error).splitlines()
    return fragment("submit_refused.html", lines=lines or [problem.detail])


def _refusal(error: RefusedError) -> HTMLResponse:
    """The answer to a draft that is refused."""
    problem = _problem(error)
    return HTMLResponse(_refused(error, problem), problem.status, problem.headers)


def _rule(detail: ErrorDetails) -> tuple[str, str]:
    """The field of the form that is wrong, and what it may hold."""
    field = str(detail["loc"][0])
    return field, NAME_RULE if field == "name" else detail["msg"]


def _preview(layers: list[list[str]]) -> list[dict[str, Any]]:
    """The choices of each layer as coloured cells, the output at the top."""
    return [
        {"layer": layer, "choices": [_choice(notation) for notation in choices]}
        for layer, choices in reversed(list(enumerate(layers)))
    ]


def _choice(notation: str) -> dict[str, str]:
    plugin = mixer_registry.usable().get(notation.partition("(")[0])
    return {"notation": notation, "letter": plugin.symbol if plugin is not None else "?"}
