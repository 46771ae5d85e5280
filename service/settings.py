"""Settings of the service, from the environment (prefix `SEARCH_SERVE_`) or its command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from search.errors import InputError

Seconds = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
DEFAULT_STORE = "sqlite:///search.db"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]", "::1")


def words(value: Any) -> Any:
    """Part a text at its commas."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return value


class ServiceSettings(BaseSettings):
    """What may be set from outside; the text under each field describes it."""

    model_config = SettingsConfigDict(
        env_prefix="SEARCH_SERVE_",
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
        populate_by_name=True,
    )

    store: str = Field(
        default=DEFAULT_STORE, validation_alias=AliasChoices("store", "SEARCH_STORE")
    )
    """Where trials are kept: an SQLAlchemy URL or the path of an SQLite file (`SEARCH_STORE`)."""
    host: str = "127.0.0.1"
    """Address to listen on; one that other machines reach needs a token in the store."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8765
    """Port to listen on; 0 takes a free one."""
    hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(words)] = ()
    """Further names of the service, as behind a proxy, with commas between; `*` allows all."""
    proxies: Annotated[tuple[str, ...], NoDecode, BeforeValidator(words)] = ()
    """Addresses of proxies whose `X-Forwarded-For` names the client, with commas between."""
    secure_cookies: bool = False
    """Whether browsers send the login cookie over HTTPS alone; set it behind a proxy with TLS."""
    files: Path | None = None
    """Folder of the artifacts that may be downloaded; by default the one of the store's files."""
    data: Path | None = None
    """Folder of texts that submitted studies may name by absolute path; none by default."""
    hub: bool = False
    """Whether submitted studies may name data sets and tokenizers of the Hugging Face Hub."""
    body_bytes: Count = 2**20
    """Largest body of a request."""
    body_depth: Count = 32
    """Deepest nesting of a JSON body."""
    body_s: Seconds = 30.0
    """How long a client may take to send a body."""
    query_rows: Count = 10_000
    """Most rows of an SQL query."""
    query_s: Seconds = 10.0
    """Longest time of an SQL query."""
    queries: Count = 4
    """SQL queries at once; more wait."""
    failed_logins: Count = 10
    """Wrong tokens from one address within `failed_login_s` before all are refused for a while."""
    failed_login_s: Seconds = 60.0
    """How long a wrong token counts."""
    streams: Count = 200
    """Event streams at once."""
    beat_s: Seconds = 15.0
    """Seconds between signs of life on an idle event stream."""
    poll_s: Seconds = 0.1
    """Seconds between two readings of new events while somebody listens."""
    threads: Count = 8
    """Requests that work at once; each may hold one connection to the store."""

    @property
    def is_loopback(self) -> bool:
        """Whether the service listens to this machine alone."""
        return self.host in LOOPBACK_HOSTS

    @property
    def host_names(self) -> frozenset[str]:
        """Names that may stand in the Host header, without port; `*` for all."""
        return frozenset(name.lower() for name in (*LOOPBACK_HOSTS, self.host, *self.hosts))


def service_settings(**given: object) -> ServiceSettings:
    """Read the settings; what is given (and not None) replaces the environment.

    Raises:
        InputError: A setting has a value that makes no sense.
    """
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    try:
        return ServiceSettings(**chosen)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InputError(f"service setting {name}: {first['msg']}") from None
