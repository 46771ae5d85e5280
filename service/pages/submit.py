"""The form that submits a study: its text checked as one types, its plan, then the submission."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from mixers.errors import MixerError
from mixers.registry import mixer_registry
from search.budget import EXAMPLES
from search.errors import InputError, SearchError
from service import schemas
from service.deps import AccessDep, SettingsDep, StoreDep, Submitter
from service.pages.study_text import START, document_of, study_text
from service.pages.tables import study_href
from service.pages.templating import render
from service.problems import ProblemError, from_search, wrong_fields
from service.routes import studies
from service.studies import find
from service.users import User

router = APIRouter(include_in_schema=False)
Refused = (ProblemError, SearchError, MixerError, ValidationError)
RefusedError = ProblemError | SearchError | MixerError | ValidationError
NAME_RULE = "it may hold letters, digits, blanks and . _ + - and begins with one of the first two"


class Draft(schemas.Request):
    """What the form holds."""

    text: Annotated[str, Field(max_length=200_000)]
    name: Annotated[str, Field(max_length=200)] = ""
    budget: Annotated[str, Field(max_length=40)] = ""


@router.get("/submit")
def form(
    store: StoreDep, user: Submitter, origin: Annotated[str, Query(alias="from")] = ""
) -> HTMLResponse:
    """The form, with a small study in it or an earlier one."""
    text = study_text(find(store, origin).spec) if origin else START
    return render("submit.html", user, "submit", text=text, examples=EXAMPLES, origin=origin)


@router.post("/submit/check")
def check(draft: Draft, store: StoreDep, settings: SettingsDep, user: Submitter) -> HTMLResponse:
    """What the text means, or every line that is wrong: both are answers to a check."""
    try:
        spec = schemas.Spec(name=draft.name or None, spec=document_of(draft.text))
        found = studies.validate(spec, store, settings, user)
        studies.checked_budget(draft.budget or None)
    except Refused as error:
        return _refusal(error, user, status=200)
    return render("submit_check.html", user, found=found, preview=_preview(found.layers))


@router.post("/submit/plan")
def plan(draft: Draft, store: StoreDep, settings: SettingsDep, user: Submitter) -> HTMLResponse:
    """What the budget buys: trials, hours, memory, and what can be decided."""
    try:
        asked = schemas.PlanRequest(
            name=draft.name or None, spec=document_of(draft.text), budget=draft.budget
        )
        made = studies.plan(asked, store, settings, user)
    except Refused as error:
        return _refusal(error, user)
    return render("submit_plan.html", user, words=made.words)


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
        return _refusal(error, user)
    return JSONResponse({"page": study_href(made.name, made.id)}, response.status_code)


def _refusal(error: RefusedError, user: User, status: int | None = None) -> HTMLResponse:
    """Every problem of a draft, one a line."""
    if isinstance(error, ProblemError):
        problem = error
    elif isinstance(error, SearchError | MixerError):
        problem = from_search(error)
    else:
        problem = wrong_fields([_rule(detail) for detail in error.errors()])
    lines = [f"{path}: {message}" if path else message for path, message in problem.errors]
    if isinstance(error, InputError):
        lines = str(error).splitlines()
    return render(
        "submit_refused.html",
        user,
        status=status or problem.status,
        headers=problem.headers,
        lines=lines or [problem.detail],
    )


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
