"""Studies: submit, list, steer, delete."""

from __future__ import annotations

import threading
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from search.errors import InputError, NothingThereError
from search.rows import StudyRow, StudyState
from search.spec.budget import Budget
from search.store.operations import Wish
from search.store.repo import Store
from service.access import Access
from service.admission import admitted
from service.deps import AccessDep, Administrator, Reader, SettingsDep, StoreDep, Submitter
from service.problems import WITH_BODY, ProblemError, errors, one_line, wrong_fields
from service.schemas import (
    LARGEST_ID,
    BudgetChange,
    ChangeDocument,
    Page,
    PageNumber,
    PageSize,
    PlanDocument,
    PlanRequest,
    Spec,
    StudyDocument,
    StudyPath,
    StudySummary,
    Submission,
    Text,
    Validated,
)
from service.studies import delete_study, find, last_event, page_of_studies, state_counts
from service.users import User

router = APIRouter(prefix="/studies", tags=["studies"])
SortStudies = Literal["created", "-created", "name", "-name", "trials", "-trials"]
PLANNING = threading.Lock()


@router.get("", summary="List studies", responses=errors())
def list_studies(
    store: StoreDep,
    user: Reader,
    q: Annotated[Text | None, Query(description="Part of the name.")] = None,
    state: StudyState | None = None,
    sort: SortStudies = "-created",
    page: PageNumber = 1,
    page_size: PageSize = 50,
) -> Page[StudySummary]:
    """Studies, newest first unless sorted otherwise."""
    rows, total = page_of_studies(store, q, state, sort, page, page_size)
    return Page(items=[summary(row) for row in rows], total=total, page=page, page_size=page_size)


@router.post(
    "",
    summary="Submit a study",
    status_code=201,
    responses=errors(409, *WITH_BODY)
    | {200: {"model": StudyDocument, "description": "It was there already, with this spec."}},
)
def submit(
    body: Submission,
    request: Request,
    response: Response,
    store: StoreDep,
    settings: SettingsDep,
    access: AccessDep,
    user: Submitter,
) -> StudyDocument:
    """Stores a study for the workers; the same request again answers 200 and changes nothing.

    A name that stands for another spec already is 409, with the fields that differ.
    """
    from search.engine.needs import plugins_of

    study = admitted(body.spec, settings)
    budget = checked_budget(body.budget)
    name = body.name or study.default_name
    exists = is_there(store, name)
    try:
        row = store.ensure_study(name, study, plugins_of(study))
    except InputError as error:
        raise ProblemError(409, one_line(error), [("name", one_line(error))]) from None
    if budget is not None and row.budget is None:
        store.ask_budget(row.id, budget)
    response.status_code = 200 if exists else 201
    response.headers["Location"] = f"{request.url.path}/{row.id}"
    if not exists:
        access.record(user.name, "submit study", name)
    return document(store, store.study(row.id))


@router.post("/validate", summary="Check a study, store nothing", responses=errors(*WITH_BODY))
def validate(body: Spec, store: StoreDep, settings: SettingsDep, user: Submitter) -> Validated:
    """Answers with the whole spec, or with every field that is wrong."""
    from search.spec.space import Space

    study = admitted(body.spec, settings)
    space = Space.of(study)
    name = body.name or study.default_name
    return Validated(
        name=name,
        exists=is_there(store, name),
        spec=study.model_dump(mode="json"),
        objective=study.objective,
        direction=study.direction,
        unit=study.unit,
        layers=[list(layer) for layer in space.layers],
        space_size=space.size if space.size <= LARGEST_ID else None,
    )


@router.post("/plan", summary="Say what a budget buys", responses=errors(409, *WITH_BODY))
def plan(
    body: PlanRequest, store: StoreDep, settings: SettingsDep, user: Submitter
) -> PlanDocument:
    """Times two architectures of the study for a few steps, on the service's machine.

    One plan is made at a time; another request meanwhile is 429.
    """
    from search.cli.output import jsonable
    from search.planning.plan import plan_study
    from search.planning.plan_words import plan_lines

    study = admitted(body.spec, settings)
    budget = Budget.parse(checked_budget(body.budget) or "")
    if not PLANNING.acquire(blocking=False):
        raise ProblemError(429, "another plan is being made", headers={"Retry-After": "10"})
    try:
        made = plan_study(study, budget, store=store, name=body.name)
    finally:
        PLANNING.release()
    return PlanDocument(plan=jsonable(made), words=plan_lines(made, study))


@router.get("/{study}", summary="Show a study", responses=errors())
def show(study: StudyPath, store: StoreDep, user: Reader) -> StudyDocument:
    """Spec, state and counts."""
    return document(store, find(store, study))


@router.delete("/{study}", summary="Delete a study", status_code=204, responses=errors(409))
def delete(study: StudyPath, store: StoreDep, access: AccessDep, user: Administrator) -> None:
    """Deletes a study with its trials; one that a worker has in hand is 409."""
    row = find(store, study)
    delete_study(store, row)
    access.record(user.name, "delete study", row.name)


@router.post("/{study}/pause", summary="Pause a study", responses=errors())
def pause(study: StudyPath, store: StoreDep, access: AccessDep, user: Submitter) -> ChangeDocument:
    """Hands out no further trial until it is resumed."""
    return change(store, access, user, study, "paused")


@router.post("/{study}/resume", summary="Resume a study", responses=errors(409))
def resume(
    study: StudyPath,
    store: StoreDep,
    access: AccessDep,
    user: Submitter,
    stopped: Annotated[bool, Query(description="Also one that was stopped for good.")] = False,
) -> ChangeDocument:
    """Lets a paused study go on; one that was stopped is 409 unless `stopped` says so."""
    try:
        return change(store, access, user, study, "reopened" if stopped else "running")
    except InputError as error:
        raise ProblemError(409, f"{one_line(error)} (stopped=true)") from None


@router.post("/{study}/stop", summary="Stop a study", responses=errors())
def stop(study: StudyPath, store: StoreDep, access: AccessDep, user: Submitter) -> ChangeDocument:
    """Ends a study for good, with the trials that wait or are in hand."""
    return change(store, access, user, study, "stopped")


@router.put("/{study}/budget", summary="Set a study's budget", responses=errors(*WITH_BODY))
def set_budget(
    study: StudyPath, body: BudgetChange, store: StoreDep, access: AccessDep, user: Submitter
) -> StudyDocument:
    """Notes what the study may spend all in all; an ended study goes on under a larger one."""
    row = find(store, study)
    budget = checked_budget(body.budget)
    assert budget is not None
    store.ask_budget(row.id, budget)
    access.record(user.name, f"set budget {budget}", row.name)
    return document(store, store.study(row.id))


def change(store: Store, access: Access, user: User, study: str, wish: Wish) -> ChangeDocument:
    """Change a study's state and write down who did."""
    row = find(store, study)
    made = store.change_state(row.id, wish)
    if made.changed:
        access.record(user.name, f"set state {made.state}", row.name)
    return ChangeDocument.model_validate(made)


def checked_budget(text: str | None) -> str | None:
    """Return a budget that can be read, as it was written.

    Raises:
        ProblemError: 422.
    """
    if text is None:
        return None
    try:
        Budget.parse(text)
    except InputError as error:
        raise wrong_fields([("budget", one_line(error).removeprefix("budget "))]) from None
    return text.strip()


def is_there(store: Store, name: str) -> bool:
    """Whether a study of this name exists."""
    try:
        store.study(name)
    except NothingThereError:
        return False
    return True


def fields(row: StudyRow) -> dict[str, Any]:
    """The fields of a summary."""
    found = {name: getattr(row, name) for name in StudySummary.model_fields}
    return found | {"created_at": row.created_at.isoformat()}


def summary(row: StudyRow) -> StudySummary:
    """A study in a list."""
    return StudySummary.model_validate(fields(row))


def document(store: Store, row: StudyRow) -> StudyDocument:
    """A study in full."""
    return StudyDocument.model_validate(
        fields(row)
        | {
            "spec": dict(row.spec),
            "space_revision": row.space_revision,
            "plugins": {kind: list(owner) for kind, owner in row.plugins.items()},
            "states": state_counts(store, row.id),
            "attrs": dict(row.attrs),
            "looks": list(store.looks(row.id)),
            "last_event": last_event(store, row.id),
        }
    )
