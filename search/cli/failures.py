"""Turn any error into one line for people and an exit code for programs."""

import errno
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from pydantic import ValidationError

INTERRUPTED = 130
BROKEN_PIPE = 141
INTERNAL_ERROR = 70

EXIT_CODES = {
    0: "done",
    1: "the run failed: every trial failed, or a check did not hold",
    2: "wrong input: command line, spec, budget, name, file or plugin",
    3: "the store cannot be used: unreadable, foreign, newer, locked or the disk is full",
    4: "nothing there: no such study or trial, or no finished trial yet",
    INTERNAL_ERROR: "an error inside search itself (--debug shows the traceback)",
    INTERRUPTED: "interrupted by Ctrl-C, or the study was paused or stopped; the same command "
    "continues",
}

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def describe(error: BaseException) -> tuple[str, int]:
    """Say in one line what went wrong and with which code the command ends.

    Args:
        error: Whatever a command raised.

    Returns:
        The line, without a traceback, and the exit code (see `EXIT_CODES`).
    """
    text, code = _describe(error)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "; ".join(line for line in lines if line), code


def _describe(error: BaseException) -> tuple[str, int]:
    from mixers.errors import MixerError
    from search.errors import SearchError

    if isinstance(error, SearchError):
        return f"{error} ({error.command})" if error.command else str(error), error.exit_code
    if isinstance(error, MixerError):
        return str(error), 2
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; the same command continues", INTERRUPTED
    if _is_validation_error(error):
        from mixers.explain import explain

        return "; ".join(explain(error)), 2
    if isinstance(error, OSError):
        return _describe_os_error(error)
    database = _database_message(error)
    if database is not None:
        return database, 3
    plugin = _plugin_message(error)
    if plugin is not None:
        return plugin, 2
    return (
        f"internal error: {type(error).__name__}: {error} (--debug shows the traceback)",
        INTERNAL_ERROR,
    )


def _is_validation_error(error: BaseException) -> "TypeGuard[ValidationError]":
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(error, pydantic.ValidationError)


def _describe_os_error(error: OSError) -> tuple[str, int]:
    if error.errno in _NO_SPACE:
        where = f" while writing {error.filename}" if error.filename else ""
        return (
            f"the disk is full{where}: free some space and run the same command again; "
            "finished trials are kept",
            3,
        )
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what, 2


def _database_message(error: BaseException) -> str | None:
    """A database driver's error that no layer translated, without the SQL that caused it."""
    sqlalchemy = sys.modules.get("sqlalchemy.exc")
    cause: BaseException | None = error
    if sqlalchemy is not None and isinstance(error, sqlalchemy.DBAPIError):
        cause = error.orig
    elif not isinstance(error, sqlite3.Error):
        return None
    if "disk is full" in str(cause):
        return (
            "the disk is full while writing the store: free some space and run the same "
            "command again; finished trials are kept"
        )
    return f"the store cannot be used: {cause} (search doctor tells more)"


def _plugin_message(error: BaseException) -> str | None:
    """An error out of the code of an installed mixer that is not ours: whose, what and where."""
    from mixers.registry import OWN_DISTRIBUTION, mixer_registry

    owners = {
        entry.plugin.__module__.partition(".")[0]: f"{entry.distribution} {entry.version}"
        for entry in mixer_registry.found or ()
        if entry.plugin is not None and entry.distribution != OWN_DISTRIBUTION
    }
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        owner = owners.get(str(frame.f_globals.get("__name__")).partition(".")[0])
        if owner is not None:
            code = frame.f_code
            return (
                f"a mixer of package {owner} failed: {type(error).__name__}: {error}, raised in "
                f"{code.co_name} at {Path(code.co_filename).name}, line {line}; "
                "'search mixers check' measures it (--debug shows the traceback)"
            )
    return None
