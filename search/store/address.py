"""Where a store lies: URLs, paths, and how they are shown without their passwords."""

import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from search.errors import InputError
from search.files import files_name

SECRET = re.compile(r"(?<=[:/])([^:/@\s]*):[^\s]*@")
SECRET_FIELD = re.compile(r"(?i)\b(password|passwd|pwd|sslpassword)=[^&\s]*")
POSTGRES = ("postgres", "postgresql", "postgresql+psycopg")
ANOTHER = "--store names another"
"""What helps at a command line where a place cannot be used: `SearchError.command`."""
SECRET_NAMES = ("password", "passwd", "pwd", "sslpassword")


@dataclass(frozen=True)
class Address:
    """A store's place.

    Attributes:
        url: For SQLAlchemy, with the password.
        label: For messages, without it.
        path: The file, for SQLite.
    """

    url: URL
    label: str
    path: Path | None

    @property
    def is_sqlite(self) -> bool:
        """Whether it is an SQLite file."""
        return self.path is not None

    @property
    def files_name(self) -> str:
        """Name of the folder of its files among those of other stores."""
        return files_name(self.label)

    def scrub(self, message: str) -> str:
        """Return the first line of a driver's message without the password."""
        line = (message.strip().splitlines() or [""])[0]
        secrets = [self.url.password, *(self.url.query.get(name) for name in SECRET_NAMES)]
        for secret in secrets:
            for word in (secret,) if isinstance(secret, str) else secret or ():
                line = line.replace(word, "***") if word else line
        return masked(line)


def masked(text: str) -> str:
    """Return text with every password of a URL in it replaced by three stars."""
    return SECRET_FIELD.sub(r"\1=***", SECRET.sub(r"\1:***@", text))


def parse_address(text: str) -> Address:
    """Read a store's URL or the path of an SQLite file.

    Raises:
        InputError: It is neither, or a database that is not supported.
    """
    if "://" not in text:
        if not text.strip() or "@" in text:
            raise InputError(
                f"store {masked(text)!r} is neither a URL nor a path; write "
                "sqlite:///search.db or postgresql://user@host/name"
            )
        return sqlite_address(Path(text))
    if text.split("?")[0].count("@") > 1:
        raise InputError(
            f"store {masked(text)!r} has more than one '@'; write those in the user's name or "
            "password as %40"
        )
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise InputError(
            f"store {masked(text)!r} is not a URL; write sqlite:///search.db or "
            "postgresql://user@host/name"
        ) from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        if not url.database or url.database == ":memory:" or url.query:
            raise InputError(
                f"store {masked(text)!r} is not a plain file; write sqlite:///search.db"
            )
        return sqlite_address(Path(url.database))
    if url.drivername in POSTGRES:
        url = url.set(drivername="postgresql+psycopg")
        label = SECRET_FIELD.sub(
            r"\1=***", url.set(drivername="postgresql").render_as_string(hide_password=True)
        )
        return Address(url, label, None)
    raise InputError(
        f"store {masked(text)!r}: {url.drivername} is not supported; use sqlite:///search.db or "
        "postgresql://user@host/name"
    )


def sqlite_address(path: Path) -> Address:
    """Return the address of an SQLite file; its URL holds the absolute path."""
    url = URL.create("sqlite", database=str(path.expanduser().absolute()))
    return Address(url, str(path), path.expanduser())
