"""The dashboard: pages set on the server, beside the API and with its rules of access."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI


def install(app: FastAPI) -> None:
    """Add the pages to an application whose state has the store and its answers."""
    from service.pages.board import Board
    from service.pages.login import problem_page

    app.state.board = Board(app.state.answers)
    app.state.problem_page = problem_page
    app.include_router(pages())


def pages() -> APIRouter:
    """All routes of the dashboard."""
    from service.pages import (
        assets,
        compare,
        login,
        mixers,
        query,
        studies,
        study,
        submit,
        trial,
        trials,
    )

    router = APIRouter(include_in_schema=False)
    for part in (assets, login, studies, study, trials, trial, compare, query, mixers, submit):
        router.include_router(part.router)
    return router
