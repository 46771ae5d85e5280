"""Files that belong to trials: which there are, and whether one may be sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fastapi.responses import FileResponse
from sqlalchemy import select
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from search.errors import NothingThereError
from search.files import Files
from search.settings import settings as machine_settings
from search.store.measurements import Artifact
from search.store.reading import plain_row
from search.store.repo import Store
from service.problems import MEANINGS, ProblemError
from service.settings import ServiceSettings


class Part(FileResponse):
    """A file, or the parts of it that `Range` asks for; a wrong range is a problem document."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_refused = False

        async def with_problem(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start" and message["status"] >= 400:
                is_refused = True
                given = Headers(raw=message["headers"]).get("content-range")
                headers = {} if given is None else {"Content-Range": given}
                status = message["status"]
                problem = ProblemError(status, MEANINGS[status], headers=headers)
                await problem.send(scope, receive, send)
            elif not is_refused:
                await send(message)

        await super().__call__(scope, receive, with_problem)


def artifacts_of(store: Store, trial_id: int) -> list[dict[str, Any]]:
    """Return the files of a trial, oldest first."""
    statement = select(Artifact).where(Artifact.trial_id == trial_id).order_by(Artifact.id)
    with store.reading() as connection:
        return [plain_row(row) for row in connection.execute(statement)]


def artifact(store: Store, artifact_id: int) -> dict[str, Any]:
    """Return one file's row.

    Raises:
        NothingThereError: There is no such file.
    """
    with store.reading() as connection:
        found = connection.execute(select(Artifact).where(Artifact.id == artifact_id)).one_or_none()
    if found is None:
        raise NothingThereError(f"there is no artifact with id {artifact_id}")
    return plain_row(found)


def place_of(row: dict[str, Any], store: Store, settings: ServiceSettings) -> Path:
    """Return where a file lies, inside the data root after links are followed.

    Raises:
        NothingThereError: It lies elsewhere or is gone; which of the two is not told.
    """
    root = (settings.files or Files.of(store.address, machine_settings()).root).resolve()
    gone = NothingThereError(f"artifact {row['id']} is not in this service's data folder")
    parts = urlsplit(row["uri"])
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise gone
    try:
        path = (root / (unquote(parts.path) if parts.scheme else row["uri"])).resolve()
        if not path.is_relative_to(root) or not path.is_file():
            raise gone
    except (OSError, ValueError, RuntimeError):
        raise gone from None
    return path
