"""The command group: our own commands plus those that other distributions register."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS_GROUP = "search.commands"
OWN_DISTRIBUTION = "mixsearch"


@cache
def plugin_entry_points() -> dict[str, EntryPoint]:
    """Commands of other rooms and distributions by name; the first of two equal names counts."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=COMMANDS_GROUP):
        found.setdefault(entry.name, entry)
    return found


def load_command(entry: EntryPoint) -> Any:
    """Load a registered command: a `typer.Typer`, or a function with Typer's annotations.

    Args:
        entry: The entry point of the group `search.commands`.

    Returns:
        The command, ready to be added to a group.

    Raises:
        InputError: If it cannot be loaded or is neither of the two; names the distribution.
    """
    from search.errors import InputError

    try:
        loaded = entry.load()
        if isinstance(loaded, typer.Typer):
            app = loaded
        elif callable(loaded):
            app = typer.Typer(add_completion=False)
            app.command(entry.name)(loaded)
        else:
            raise TypeError("is neither a typer.Typer nor a function")
        command = typer.main.get_command(app)
    except (Exception, SystemExit) as error:
        owner = entry.dist.name if entry.dist is not None else "an unknown distribution"
        raise InputError(
            f"command {entry.name!r} of {owner} cannot be loaded: "
            f"{type(error).__name__}: {error}; repair or uninstall {owner}"
        ) from error
    command.name = entry.name
    return command


def commands_of(group: Any) -> dict[str, Any]:
    """The commands of a group by name, with the registered ones of this distribution."""
    found = dict(group.commands)
    if isinstance(group, SearchGroup):
        for name, entry in sorted(plugin_entry_points().items()):
            if name not in found and entry.dist is not None and entry.dist.name == OWN_DISTRIBUTION:
                found[name] = load_command(entry)
    return found


class SearchGroup(TyperGroup):
    """Loads a registered command when it is named or listed; a broken one harms no other."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Our commands in the order of work, then the registered ones."""
        own = super().list_commands(ctx)
        return own + sorted(set(plugin_entry_points()) - set(own))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command; a registered name never replaces one of ours."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in plugin_entry_points():
            return own
        from search.errors import InputError

        try:
            return load_command(plugin_entry_points()[cmd_name])
        except InputError as error:
            return _broken(cmd_name, error)


def _broken(name: str, error: Exception) -> Any:
    """A stand-in that is listed in the help and fails with the reason when it is called."""
    app = typer.Typer(add_completion=False)

    @app.command(
        name,
        help=f"broken: {error}",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def fail() -> None:
        raise error

    return typer.main.get_command(app)
