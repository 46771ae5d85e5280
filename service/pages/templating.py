"""Sets the pages: one environment, all text escaped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from service.pages import words
from service.pages.assets import address
from service.users import User

PLACES = (
    ("studies", "/studies", "Studies"),
    ("compare", "/compare", "Compare"),
    ("mixers", "/mixers", "Mixers"),
    ("query", "/query", "SQL"),
    ("submit", "/submit", "New study"),
)
FILTERS: tuple[Callable[..., str], ...] = (
    words.ago,
    words.iso,
    words.utc,
    words.mood,
    words.tint,
    words.ticks,
)


@cache
def environment() -> Environment:
    """The templates of this package."""
    made = Environment(
        loader=PackageLoader("service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {function.__name__: function for function in FILTERS}
    made.globals |= {"asset": address, "places": PLACES}
    return made


def fragment(template: str, **context: Any) -> str:
    """Sets a part of a page."""
    return environment().get_template(template).render(**context)


def render(
    template: str,
    user: User | None,
    place: str = "",
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **context: Any,
) -> HTMLResponse:
    """Sets a page.

    Args:
        template: Name of its template.
        user: Who looks; without one the page leads nowhere.
        place: Which entry of the navigation it is.
        status: HTTP status.
        headers: Further headers.
        context: What the template shows.
    """
    csrf = user.csrf if user is not None and user.via == "cookie" else ""
    text = fragment(template, user=user, csrf=csrf, place=place, **context)
    return HTMLResponse(text, status, headers)
