"""What happened: as a list, and live as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from search.errors import SearchError
from service.deps import AccessDep, HubDep, Reader, StoreDep
from service.problems import ProblemError, errors
from service.schemas import LARGEST_ID, EventDocument, Text
from service.studies import find

router = APIRouter(prefix="/events", tags=["events"])
RECONNECT_MS = 2000
After = Annotated[int, Query(ge=0, le=LARGEST_ID, description="Only events above this id.")]
Study = Annotated[Text | None, Query(description="Only events of this study.")]


@router.get("", summary="List events", responses=errors())
def list_events(
    store: StoreDep,
    user: Reader,
    after: After = 0,
    study: Study = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[EventDocument]:
    """Events by rising id."""
    study_id = None if study is None else find(store, study).id
    rows = store.events(after, study=study_id, limit=limit)
    return [EventDocument.model_validate(row) for row in rows]


def start_of(
    store: StoreDep,
    hub: HubDep,
    user: Reader,
    after: Annotated[
        int | None, Query(ge=0, le=LARGEST_ID, description="Only events above this id.")
    ] = None,
    study: Study = None,
    last_event_id: Annotated[
        str | None,
        Header(max_length=20, pattern=r"^\d{0,15}$", description="Sent by a browser that resumes."),
    ] = None,
) -> tuple[int, int | None]:
    """Where a stream begins, and the study it is about; errors come before the stream does."""
    hub.admit()
    study_id = None if study is None else find(store, study).id
    if last_event_id:
        return int(last_event_id), study_id
    return (hub.look() if after is None else after), study_id


@router.get(
    "/stream",
    summary="Follow events",
    response_class=EventSourceResponse,
    responses=errors(),
)
async def stream(
    request: Request,
    hub: HubDep,
    access: AccessDep,
    start: Annotated[tuple[int, int | None], Depends(start_of)],
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events with rising ids; `Last-Event-ID` (or `after`) resumes without a gap.

    Begins with what happens from now on, unless told otherwise. The event's type is its kind, its
    data an `EventDocument`. A comment is sent now and then while nothing happens.
    """
    after, study_id = start
    yield ServerSentEvent(id=str(after), retry=RECONNECT_MS)
    async for event in hub.follow(after, study_id):
        if event is not None:
            data = EventDocument.model_validate(event)
            yield ServerSentEvent(data=data, event=event["kind"], id=str(event["id"]))
            continue
        yield ServerSentEvent(comment="beat")
        try:
            await anyio.to_thread.run_sync(access.identify, request)
        except (ProblemError, SearchError):
            return  # the token was revoked meanwhile
