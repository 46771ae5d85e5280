"""SQL that can only read."""

from __future__ import annotations

from typing import Literal

import anyio.to_thread
from fastapi import APIRouter, Request

from search.store.views import VIEWS, find_view
from service.deps import Reader, SettingsDep, StoreDep
from service.problems import WITH_BODY, errors
from service.schemas import QueryDocument, Rows, SqlRequest, Text

router = APIRouter(tags=["query"])

ViewName = Literal[
    "trials_flat", "leaderboard", "layer_effects", "pareto", "verdicts", "views_version"
]


@router.post("/query", summary="Run a SELECT", responses=errors(*WITH_BODY))
async def query(
    body: SqlRequest, request: Request, store: StoreDep, settings: SettingsDep, user: Reader
) -> QueryDocument:
    """Runs one SELECT on the views, on a connection that cannot write.

    NaN and infinities read as null. A query that writes, is wrong, or takes too long is 422.
    """
    rows = min(body.limit, settings.query_rows)
    seconds = min(body.timeout_s, settings.query_s)
    result = await anyio.to_thread.run_sync(
        store.query, body.sql, rows, seconds, limiter=request.app.state.queries
    )
    return QueryDocument(
        columns=list(result.columns),
        rows=[list(row) for row in result.rows],
        truncated=result.truncated,
    )


@router.get("/query/views", summary="What can be queried", responses=errors())
def views(user: Reader) -> dict[str, dict[str, str]]:
    """Columns of each public view and what they mean."""
    return {view.name: dict(view.columns) for view in VIEWS}


@router.get("/views/{view}", summary="Rows of a view", responses=errors())
def view_rows(view: ViewName, store: StoreDep, user: Reader, study: Text | None = None) -> Rows:
    """All rows of a public view, or those of one study, in the view's order."""
    return Rows(columns=find_view(view).columns, rows=store.view(view, study))
