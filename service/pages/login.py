"""The login page, and what a person sees of an error."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from service.pages.templating import render
from service.problems import ProblemError

router = APIRouter(include_in_schema=False)
HINTS = {
    403: "A token with another role can do this; 'search token new' makes one.",
    404: "It may have been deleted, or the address has a slip.",
    503: "The store does not answer now. The page works again when it does.",
}


@router.get("/login")
def login(next: Annotated[str, Query(max_length=2000)] = "") -> HTMLResponse:
    """Asks for a token; a browser keeps it in a cookie that scripts cannot read."""
    return render("login.html", None, next=own_path(next))


def own_path(path: str) -> str:
    """A path of this service, the first page in place of anything else."""
    is_own = path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()
    return path if is_own else "/studies"


def problem_page(request: Request, problem: ProblemError) -> Response:
    """Tells a person what is wrong; one who is not logged in is led to the login."""
    if problem.status == 401 and request.method == "GET":
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?{urlencode({'next': asked})}", 303)
    page = render(
        "problem.html",
        None,
        status=problem.status,
        headers=problem.headers,
        title=problem.document("")["title"],
        detail=problem.detail,
        errors=problem.errors,
        hint=HINTS.get(problem.status, ""),
    )
    return page
