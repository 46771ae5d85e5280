"""Keys to the service, and the record of what was asked with them."""

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, update

from search.errors import InputError, NothingThereError
from search.store.engine import database_time
from search.store.reading import plain_row
from search.store.tables import Audit, Token
from search.store.types import AnyRow

PREFIX = "mixsearch_"
SECRET_BYTES = 32
USED_EVERY = timedelta(minutes=1)
LONGEST = 200
COLUMNS = (
    Token.id,
    Token.name,
    Token.role,
    Token.created_at,
    Token.last_used_at,
    Token.revoked_at,
)


def token_hash(text: str) -> str:
    """Return what is kept of a token: it is random, so a plain hash hides it."""
    return hashlib.sha256(text.encode()).hexdigest()


def create(connection: Connection, name: str, role: str) -> str:
    """Make a token; returns its text, which is not kept.

    Raises:
        InputError: The name is taken or cannot be shown.
    """
    if not name.strip() or not name.isprintable() or len(name) > LONGEST:
        raise InputError(f"token name {name!r:.60}: give it a visible one")
    taken = connection.execute(select(Token.id).where(Token.name == name)).first()
    if taken is not None:
        raise InputError(f"there is a token {name!r} already; choose another name")
    text = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    connection.execute(
        insert(Token).values(
            name=name,
            role=role,
            token_hash=token_hash(text),
            created_at=database_time(connection),
        )
    )
    return text


def revoke(connection: Connection, name: str) -> None:
    """End a token; it stays on record, and its name is not given again.

    Raises:
        NothingThereError: There is no such token.
    """
    found = connection.execute(select(Token.revoked_at).where(Token.name == name)).one_or_none()
    if found is None:
        raise NothingThereError(f"there is no token {name!r}; 'search token ls' lists them")
    if found.revoked_at is None:
        now = database_time(connection)
        connection.execute(update(Token).where(Token.name == name).values(revoked_at=now))


def listed(connection: Connection) -> list[dict[str, Any]]:
    """Return all tokens without their hashes, oldest first."""
    return [plain_row(row) for row in connection.execute(select(*COLUMNS).order_by(Token.id))]


def are_there(connection: Connection) -> bool:
    """Whether the store ever had a token; a revoked one counts."""
    return connection.execute(select(Token.id).limit(1)).first() is not None


def find(connection: Connection, text: str) -> AnyRow | None:
    """Return the live token with this text: its name, role and last use."""
    digest = token_hash(text)
    found = connection.execute(
        select(Token.id, Token.name, Token.role, Token.token_hash, Token.last_used_at).where(
            Token.token_hash == digest, Token.revoked_at.is_(None)
        )
    ).one_or_none()
    if found is None or not hmac.compare_digest(found.token_hash, digest):
        return None
    return found


def is_use_due(last_used_at: datetime | None, now: datetime) -> bool:
    """Whether a use is to be written down: at most one a minute, so that reading stays reading."""
    return last_used_at is None or now - last_used_at > USED_EVERY


def mark_used(connection: Connection, token_id: int) -> None:
    """Write down that a token was shown."""
    now = database_time(connection)
    connection.execute(update(Token).where(Token.id == token_id).values(last_used_at=now))


def audit(
    connection: Connection, actor: str, action: str, subject: str | None, outcome: str = "done"
) -> None:
    """Write down what was asked and what came of it."""
    connection.execute(
        insert(Audit).values(
            at=database_time(connection),
            actor=actor[:LONGEST],
            action=action,
            subject=subject and subject[:LONGEST],
            outcome=outcome[:LONGEST],
        )
    )
