"""The page of studies, and the first page."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, RedirectResponse

from search.rows import STUDY_STATES, StudyRow
from search.spec.budget import duration_words
from service.deps import Reader, StoreDep
from service.pages.tables import PAGE_SIZE, Column, List, Table, Value, cell, study_href
from service.pages.templating import render
from service.pages.words import study_reason, study_state
from service.schemas import PageNumber
from service.studies import page_of_studies

router = APIRouter(include_in_schema=False)
Sort = Literal["", "created", "-created", "name", "-name", "trials", "-trials"]


@router.get("/")
def first_page() -> RedirectResponse:
    """Leads to the studies."""
    return RedirectResponse("/studies")


@router.get("/studies")
def studies(
    store: StoreDep,
    user: Reader,
    q: Annotated[str, Query(max_length=200)] = "",
    state: Annotated[str, Query(max_length=20)] = "",
    sort: Sort = "",
    page: PageNumber = 1,
) -> HTMLResponse:
    """All studies, newest first unless sorted otherwise."""
    wanted = next((known for known in STUDY_STATES if known == state), None)
    found, total = page_of_studies(store, q or None, wanted, sort or "-created", page, PAGE_SIZE)
    listed = List("/studies", {"q": q, "state": wanted or ""}, sort, page, total)
    return render(
        "studies.html",
        user,
        "studies",
        table=_table(found, listed),
        list=listed,
        q=q,
        state=wanted or "",
        states=STUDY_STATES,
    )


def _table(found: list[StudyRow], listed: List) -> Table:
    columns = (
        listed.column("study", "name"),
        Column("state"),
        listed.column("trials", "trials", right=True, first="-"),
        Column("completed", right=True),
        Column("running", right=True),
        Column("busy", right=True),
        Column("objective"),
        listed.column("created", "created", first="-"),
    )
    return Table("Studies", columns, tuple(_row(study) for study in found))


def _row(study: StudyRow) -> tuple[Value, ...]:
    origin = f"from {study.base}, for {study.purpose}" if study.base else ""
    return (
        cell(study.name, href=study_href(study.name, study.id), note=origin),
        cell(study_state(study), kind="state", note=study_reason(study)),
        study.n_trials,
        study.n_completed,
        study.n_running,
        duration_words(study.busy_s),
        f"{study.direction} {study.objective}",
        cell(study.created_at, kind="moment"),
    )
