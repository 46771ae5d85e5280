"""What workers without a database do through the service: the writing part of their contract.

Each route is one call of the store. The budget is the study's own and is judged in the store's
transaction; the architecture comes from the worker, since the service proposes nothing.
"""

from __future__ import annotations

import gzip
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from search.engine.terms import Terms
from search.remote.reading import STUDY
from search.remote.wire import (
    Beat,
    ClaimRequest,
    Commit,
    Committed,
    Fail,
    Failed,
    Finish,
    Lease,
    Registered,
    Registration,
    Release,
    Reports,
    RowsPage,
    StudyEnd,
)
from search.rows import Offer, StudyRow
from service.bodies import body_of, described_by
from service.deps import AccessDep, FeedDep, StoreDep, Submitter
from service.problems import WITH_BODY, errors
from service.schemas import LARGEST_ID, IdPath, StudyForWork, Text
from service.work import (
    admitted_spec,
    asked_budget,
    claim_of,
    end_study,
    give_back,
    known_worker,
    lease_lost,
)

router = APIRouter(prefix="/workers", tags=["workers"])
LEAST_ZIPPED = 1024
QUICK = 1
"""Level of compression: rows shrink to a tenth, and the service has other work."""


@router.post(
    "",
    summary="Register a worker",
    status_code=201,
    responses=errors(*WITH_BODY),
    openapi_extra=described_by(Registration),
)
def register(
    body: Annotated[Registration, Depends(body_of(Registration))],
    store: StoreDep,
    access: AccessDep,
    user: Submitter,
) -> Registered:
    """Answers with the id that the worker shows from now on."""
    worker_id = store.register_worker(
        host=body.host, pid=body.pid, devices=body.devices, slots=body.slots, is_served=True
    )
    access.record(user.name, "register worker", f"{body.host}-{body.pid}")
    return Registered(worker_id=worker_id, files=store.address.files_name)


@router.post(
    "/{worker_id}/seen", summary="Give a sign of life", status_code=204, responses=errors()
)
def seen(worker_id: IdPath, store: StoreDep, user: Submitter) -> None:
    """For a worker without a trial; one with a trial renews its lease instead."""
    store.see_worker(known_worker(store, worker_id))


@router.post("/{worker_id}/close", summary="Say goodbye", status_code=204, responses=errors())
def close(worker_id: IdPath, store: StoreDep, user: Submitter) -> None:
    """Notes that a worker ended in good order."""
    store.close_worker(known_worker(store, worker_id))


@router.get("/studies", summary="Studies with work", responses=errors())
def open_studies(
    store: StoreDep,
    user: Submitter,
    study: Annotated[Text | None, Query(description="Only the one of this name.")] = None,
) -> list[StudyForWork]:
    """Studies that hand out trials and have a budget, oldest first."""
    return [for_work(row) for row in store.open_studies(study)]


@router.get("/studies/{study_id}", summary="A study with work", responses=errors())
def show(study_id: IdPath, store: StoreDep, user: Submitter) -> StudyForWork:
    """The study as a worker needs it, with the sampler's notes."""
    return for_work(store.study(study_id))


def for_work(row: StudyRow) -> StudyForWork:
    """Describe a study for a worker."""
    return StudyForWork.model_validate(STUDY.dump_python(row, mode="json"))


@router.post(
    "/studies/{study_id}/end",
    summary="Note how a study ended",
    status_code=204,
    responses=errors(409, *WITH_BODY),
    openapi_extra=described_by(StudyEnd),
)
def end(
    study_id: IdPath,
    body: Annotated[StudyEnd, Depends(body_of(StudyEnd))],
    store: StoreDep,
    user: Submitter,
) -> None:
    """Once nothing of it is in hand or waits any more; before that it is 409."""
    end_study(store, study_id, body)


@router.get(
    "/studies/{study_id}/rows",
    summary="Trials that changed",
    responses=errors() | {200: {"model": RowsPage}},
    response_model=None,
)
def rows(
    request: Request,
    study_id: IdPath,
    feed: FeedDep,
    user: Submitter,
    epoch: Annotated[
        str | None, Query(max_length=64, pattern="^[0-9a-f]+$", description="Of the last answer.")
    ] = None,
    after: Annotated[
        int, Query(ge=0, le=LARGEST_ID, description="Revision of the last answer.")
    ] = 0,
) -> Response:
    """What a worker's copy of a study's rows lacks, a page at a time."""
    text = feed.since(study_id, epoch, after).model_dump_json().encode()
    headers = {"Vary": "Accept-Encoding"}
    if len(text) >= LEAST_ZIPPED and "gzip" in request.headers.get("accept-encoding", ""):
        text = gzip.compress(text, QUICK)
        headers["Content-Encoding"] = "gzip"
    return Response(text, media_type="application/json", headers=headers)


@router.post(
    "/{worker_id}/claims",
    summary="Claim a trial",
    responses=errors(409, *WITH_BODY),
    openapi_extra=described_by(ClaimRequest),
)
def claim(
    worker_id: IdPath,
    body: Annotated[ClaimRequest, Depends(body_of(ClaimRequest))],
    store: StoreDep,
    user: Submitter,
) -> Offer:
    """A queued trial, one to promote, or the next number; none where the budget is used up.

    A claim without `spec` is a reservation, which `commit` turns into a trial. What the store lists
    as the worker's own and it does not hold goes back first.
    """
    study = store.study(body.study_id)
    terms = Terms(asked_budget(study), body.agenda, body.promotions)
    give_back(store, known_worker(store, worker_id), body.held)
    return store.claim(study.id, worker_id, terms)


@router.post(
    "/trials/{trial_id}/commit",
    summary="Give a reservation its architecture",
    responses=errors(409, *WITH_BODY),
    openapi_extra=described_by(Commit),
)
def commit(
    trial_id: IdPath,
    body: Annotated[Commit, Depends(body_of(Commit))],
    store: StoreDep,
    user: Submitter,
) -> Committed:
    """`running` and `reused` settle the trial; after the others it may be committed again."""
    held = claim_of(store, trial_id, body.token)
    study = store.study(held.study_id)
    outcome = store.commit(
        held,
        admitted_spec(study, body),
        seed=body.seed,
        seed_index=body.seed_index,
        training_key=body.training_key,
        role=body.role,
        params=body.params,
        attrs=body.attrs,
        study_attrs=body.study_attrs,
        recipe=body.recipe,
        flops=body.flops,
        most_flops=asked_budget(study).most_flops,
        splits=body.splits,
        until=body.until,
    )
    if outcome == "lost":
        raise lease_lost()
    return Committed(outcome=outcome)


@router.post(
    "/trials/{trial_id}/heartbeat",
    summary="Renew a lease",
    responses=errors(409, *WITH_BODY),
    openapi_extra=described_by(Lease),
)
def heartbeat(
    trial_id: IdPath,
    body: Annotated[Lease, Depends(body_of(Lease))],
    store: StoreDep,
    user: Submitter,
) -> Beat:
    """By the database's clock; a trial that another worker took over is 409."""
    state = store.heartbeat(claim_of(store, trial_id, body.token))
    if state is None:
        raise lease_lost()
    return Beat(state=state)


@router.post(
    "/trials/{trial_id}/reports",
    summary="Report from a trial",
    status_code=204,
    responses=errors(409, *WITH_BODY),
    openapi_extra=described_by(Reports),
)
def report(
    trial_id: IdPath,
    body: Annotated[Reports, Depends(body_of(Reports))],
    store: StoreDep,
    user: Submitter,
) -> None:
    """Progress, readings and warnings; a reading that comes twice is one."""
    if not store.report(claim_of(store, trial_id, body.token), body.messages):
        raise lease_lost()


@router.post(
    "/trials/{trial_id}/result",
    summary="End a trial with its result",
    status_code=204,
    responses=errors(409, *WITH_BODY),
    openapi_extra=described_by(Finish),
)
def finish(
    trial_id: IdPath,
    body: Annotated[Finish, Depends(body_of(Finish))],
    store: StoreDep,
    user: Submitter,
) -> None:
    """A result that comes twice is one; one that comes too late is kept with its attempt."""
    if not store.finish(claim_of(store, trial_id, body.token), body.result):
        raise lease_lost()


@router.post(
    "/trials/{trial_id}/failure",
    summary="End an attempt that broke",
    responses=errors(409, *WITH_BODY),
    openapi_extra=described_by(Fail),
)
def fail(
    trial_id: IdPath,
    body: Annotated[Fail, Depends(body_of(Fail))],
    store: StoreDep,
    user: Submitter,
) -> Failed:
    """Says whether the trial gets another attempt."""
    outcome = store.fail(claim_of(store, trial_id, body.token), body.failure)
    if outcome == "lost":
        raise lease_lost()
    return Failed(outcome=outcome)


@router.post(
    "/trials/{trial_id}/release",
    summary="Give a claim back",
    status_code=204,
    responses=errors(409, *WITH_BODY),
    openapi_extra=described_by(Release),
)
def release(
    trial_id: IdPath,
    body: Annotated[Release, Depends(body_of(Release))],
    store: StoreDep,
    user: Submitter,
) -> None:
    """A reservation frees its number, a trial goes back to the queue; twice is once."""
    store.release(claim_of(store, trial_id, body.token), body.returned, body.reason)
