"""Files that belong to trials: what they are, where they lie, and what they hold."""

from sqlalchemy import Connection, delete, insert, select

from search.errors import NothingThereError
from search.store.engine import database_time
from search.store.measurements import Artifact
from search.store.tables import Trial


def add(
    connection: Connection,
    trial_id: int,
    kind: str,
    uri: str,
    *,
    sha256: str | None,
    size_bytes: int | None,
) -> int:
    """Note a file of a trial, in place of one that lay there before; returns its id.

    Raises:
        NothingThereError: There is no such trial.
    """
    if connection.execute(select(Trial.id).where(Trial.id == trial_id)).first() is None:
        raise NothingThereError(f"there is no trial with id {trial_id}")
    connection.execute(delete(Artifact).where(Artifact.trial_id == trial_id, Artifact.uri == uri))
    return connection.execute(
        insert(Artifact)
        .values(
            trial_id=trial_id,
            kind=kind,
            uri=uri,
            sha256=sha256,
            size_bytes=size_bytes,
            created_at=database_time(connection),
        )
        .returning(Artifact.id)
    ).scalar_one()
