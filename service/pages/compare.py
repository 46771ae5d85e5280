"""Two studies side by side, where task, splits and recipe agree."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from search.answers.side_by_side import side_by_side
from search.cli.answering import require_finished
from search.cli.compare import allowed_differences
from search.errors import SearchError
from search.report.compare import comparison
from search.report.sections import Section
from search.store.repo import Store
from service.deps import Reader, StoreDep
from service.pages.board import Board, board_of
from service.pages.tables import from_section, study_href
from service.pages.templating import render
from service.problems import one_line
from service.studies import find, page_of_studies

router = APIRouter(include_in_schema=False)
Name = Annotated[str, Query(max_length=200)]
MOST_STUDIES = 500


@router.get("/compare")
def compare(
    request: Request, store: StoreDep, user: Reader, a: Name = "", b: Name = ""
) -> HTMLResponse:
    """Two studies, or the form that names them."""
    found: dict[str, Any] = {"sections": (), "problem": "", "pending": False, "links": ()}
    if a and b:
        found |= _compared(store, board_of(request), a, b)
    listed, _ = page_of_studies(store, None, None, "-created", 1, MOST_STUDIES)
    return render(
        "compare.html",
        user,
        "compare",
        a=a,
        b=b,
        names=[study.name for study in listed],
        **found,
    )


def _compared(store: Store, board: Board, a: str, b: str) -> dict[str, Any]:
    try:
        studies = (find(store, a), find(store, b))
        differing = allowed_differences(*studies)
        readings = [board.read(study) for study in studies]
        problem = next((reading.problem for reading in readings if reading.problem), "")
        shown = [reading.shown for reading in readings]
        if problem:
            return {"problem": problem}
        first, second = shown
        if first is None or second is None:
            return {"pending": True}
        for one in (first, second):
            require_finished(one.answered.answer, one.answered.study)
    except SearchError as error:
        return {"problem": one_line(error)}
    hrefs = [study_href(study.name, study.id) for study in studies]
    sides = side_by_side(
        (studies[0].name, studies[1].name),
        (first.answered.answer, second.answered.answer),
        (first.answered.rows, second.answered.rows),
        differing,
    )
    return {
        "sections": [_part(section) for section in comparison(sides)],
        "links": list(zip((study.name for study in studies), hrefs, strict=True)),
        "as_json": f"/api/v1{hrefs[0]}/compare/{hrefs[1].rpartition('/')[2]}",
        "pending": not all(reading.is_current for reading in readings),
    }


def _part(section: Section) -> dict[str, Any]:
    table = from_section(section, fits=True) if section.header else None
    return {"section": section, "table": table}
