"""`search serve` and `search token`, found through the group `search.commands`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from search.cli.output import LEFT, note, print_json, table, write

token = typer.Typer(
    help="Make, list and revoke the tokens that clients of `search serve` need.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)
Role = Literal["read", "submit", "admin"]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.")]


def serve(
    store: StoreOption = DEFAULT_STORE,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen on; one that other machines reach needs a token. "
            "By default 127.0.0.1, or SEARCH_SERVE_HOST.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="N",
            help="Port to listen on; 0 takes a free one. By default 8765, or SEARCH_SERVE_PORT.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FOLDER",
            help="Folder of texts that submitted studies may name; SEARCH_SERVE_DATA by default.",
        ),
    ] = None,
) -> None:
    """Serve the store over HTTP: the dashboard, and the API below /api/v1.

    Ctrl-C ends it.
    """
    from service.server import serve as run
    from service.settings import service_settings

    run(service_settings(store=store, host=host, port=port, data=data))


@token.command("new")
def new_token(
    name: NameArgument,
    role: Annotated[
        Role,
        typer.Option(
            "--role", help="read looks; submit also starts and steers studies; admin also deletes."
        ),
    ] = "read",
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Make a token and print it, once: only its hash is kept.

    From the first token on, every request to the service needs one.
    """
    from search.store import tokens
    from search.store.repo import Store

    with Store.open(store) as opened, opened.writing() as connection:
        text = tokens.create(connection, name, role)
        tokens.audit(connection, "command line", f"make token ({role})", name)
    if json:
        print_json({"name": name, "role": role, "token": text})
        return
    write(text)
    note(f"token {name!r} with role {role}; it is not shown again")


@token.command("ls")
def list_tokens(store: StoreOption = DEFAULT_STORE, json: JsonOption = False) -> None:
    """List the tokens, without their text."""
    from search.errors import NothingThereError
    from search.store import tokens
    from search.store.repo import Store

    with Store.open(store, create=False) as opened, opened.reading() as connection:
        found = tokens.listed(connection)
    if json:
        print_json(found)
        return
    if not found:
        raise NothingThereError("there is no token yet; 'search token new NAME' makes one")
    columns = ("name", "role", "created", "last used", "revoked")
    rows = [
        (
            row["name"],
            row["role"],
            *(_day(row[name]) for name in ("created_at", "last_used_at", "revoked_at")),
        )
        for row in found
    ]
    write(table([(name, LEFT) for name in columns], rows))


@token.command("revoke")
def revoke_token(name: NameArgument, store: StoreOption = DEFAULT_STORE) -> None:
    """End a token at once; its name stays on record."""
    from search.store import tokens
    from search.store.repo import Store

    with Store.open(store, create=False) as opened, opened.writing() as connection:
        tokens.revoke(connection, name)
        tokens.audit(connection, "command line", "revoke token", name)
    note(f"token {name!r} is revoked")


def _day(time: str | None) -> str:
    return "-" if time is None else f"{time[:16].replace('T', ' ')} UTC"
