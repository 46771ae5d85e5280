"""Files that the pages load: their own, the drawing code of reports, and Plotly's library.

An address holds a hash of the content of all files, so a browser may keep them for good.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Response

from service.problems import ProblemError

KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
FOR_GOOD = "public, max-age=31536000, immutable"
router = APIRouter(include_in_schema=False)


@cache
def sources() -> dict[str, Traversable]:
    """Every file that may be loaded, by name."""
    own = {file.name: file for file in files("service.pages").joinpath("static").iterdir()}
    return own | {
        "figures.js": files("search.report").joinpath("templates", "page.js"),
        "plotly.min.js": files("plotly").joinpath("package_data", "plotly.min.js"),
    }


@cache
def content(name: str) -> bytes:
    """A file's bytes.

    Raises:
        KeyError: There is no such file.
    """
    return sources()[name].read_bytes()


@cache
def version() -> str:
    """A hash of all files, so that a module finds the others beside it."""
    digest = hashlib.sha256()
    for name in sorted(sources()):
        digest.update(content(name))
    return digest.hexdigest()[:12]


@cache
def address(name: str) -> str:
    """Where a browser loads a file from.

    Raises:
        KeyError: There is no such file.
    """
    sources()[name]
    return f"/static/{version()}/{name}"


@router.get("/static/{version_asked}/{name}")
def asset(version_asked: str, name: str) -> Response:
    """A file; only under the address that names its content."""
    if name not in sources() or version_asked != version():
        raise ProblemError(404, "there is no such file; load the page again")
    kind = KINDS[name[name.rindex(".") :]]
    return Response(content(name), media_type=kind, headers={"Cache-Control": FOR_GOOD})
