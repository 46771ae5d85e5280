"""The SQL console: one SELECT on the public views, with its rows as a table or a CSV file."""

from __future__ import annotations

import csv
import io
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from search.errors import SearchError
from search.store.query import QueryResult
from search.store.views import VIEWS
from service.deps import Reader, SettingsDep, StoreDep
from service.pages.tables import Column, Table
from service.pages.templating import render
from service.problems import one_line
from service.routes.results import attachment

router = APIRouter(include_in_schema=False)
SHOWN_ROWS = 500
LONGEST_CELL = 300
Sql = Annotated[str, Query(max_length=20_000)]
EXAMPLES = (
    (
        "Best architectures",
        "SELECT study, place, code, mean, sd, n, test_mean\nFROM leaderboard\n"
        "WHERE place <= 5\nORDER BY study, place",
    ),
    (
        "Quality and cost of the front",
        "SELECT study, code, mean, params, flops, latency_s\n"
        "FROM pareto\nWHERE is_pareto\nORDER BY study, flops",
    ),
    (
        "Mean by layer and mixer",
        "SELECT study, layer, kind, n, mean, difference\n"
        "FROM layer_effects\nORDER BY study, layer, mean",
    ),
    (
        "What failed",
        "SELECT study, number, code, state, reason, error\nFROM trials_flat\n"
        "WHERE state IN ('failed', 'diverged')\nORDER BY study, number",
    ),
)


@router.get("/query")
async def console(
    request: Request, store: StoreDep, settings: SettingsDep, user: Reader, sql: Sql = ""
) -> HTMLResponse:
    """The console; with `sql`, also what it gives."""
    result, problem = None, ""
    if sql.strip():
        try:
            result = await anyio.to_thread.run_sync(
                store.query, sql, SHOWN_ROWS, settings.query_s, limiter=request.app.state.queries
            )
        except SearchError as error:
            problem = one_line(error)
    return render(
        "query.html",
        user,
        "query",
        status=422 if problem else 200,
        sql=sql,
        result=result,
        table=_table(result) if result is not None else None,
        problem=problem,
        examples=EXAMPLES,
        views=VIEWS,
        most=SHOWN_ROWS,
    )


@router.get("/query.csv")
async def as_csv(
    request: Request, store: StoreDep, settings: SettingsDep, user: Reader, sql: Sql
) -> Response:
    """The rows as a file, up to the service's limit."""
    result = await anyio.to_thread.run_sync(
        store.query,
        sql,
        settings.query_rows,
        settings.query_s,
        limiter=request.app.state.queries,
    )
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(result.columns)
    writer.writerows(result.rows)
    return Response(
        out.getvalue(), media_type="text/csv; charset=utf-8", headers=attachment("query.csv")
    )


def _table(result: QueryResult) -> Table:
    numeric = [
        all(isinstance(row[at], int | float) for row in result.rows if row[at] is not None)
        and any(row[at] is not None for row in result.rows)
        for at in range(len(result.columns))
    ]
    columns = tuple(
        Column(name, right) for name, right in zip(result.columns, numeric, strict=True)
    )
    rows = tuple(tuple(_text(value) for value in row) for row in result.rows)
    return Table("Result", columns, rows, fits=True)


def _text(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]} ..."
