"""The entry point of the command `search`: runs a command, prints its failure in one line."""

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from search.cli.failures import BROKEN_PIPE, INTERRUPTED, describe


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit code.

    Args:
        argv: Arguments after the program's name; those of the process by default.

    Raises:
        SystemExit: Always, with one of `search.cli.failures.EXIT_CODES`.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = _take_debug(arguments)
    if not debug:
        _quieten_third_parties()
    try:
        code = _run(arguments, debug)
    except KeyboardInterrupt as error:  # before the command began, while modules are imported
        code = _fail(*describe(error))
    sys.exit(code)


def _run(arguments: list[str], debug: bool) -> int:
    import typer

    from search.cli.app import command_tree

    try:
        result = command_tree()(arguments, prog_name="search", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _close_pipe()
    except typer.TyperException as error:
        return _usage_failure(error)
    except typer.Abort:
        return _fail("interrupted", INTERRUPTED)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            return _close_pipe()
        return error.code if isinstance(error.code, int) else 1
    except BaseException as error:
        if debug:
            traceback.print_exception(error)
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
        return _fail(*describe(error))
    if result == INTERRUPTED:  # how Typer ends a command on Ctrl-C
        return _fail(*describe(KeyboardInterrupt()))
    return result if isinstance(result, int) else 0


def _take_debug(arguments: list[str]) -> bool:
    """`--debug` may stand anywhere, as people add it at the end of the line that failed."""
    wanted = os.environ.get("SEARCH_DEBUG", "") not in ("", "0")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    while "--debug" in arguments[:end]:
        arguments.remove("--debug")
        end -= 1
        wanted = True
    return wanted


def _quieten_third_parties() -> None:
    """Show warnings about plugins as one line each; all others only with `--debug`."""
    from mixers.errors import PluginWarning

    warnings.simplefilter("ignore")
    warnings.simplefilter("default", PluginWarning)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)  # noqa: T201


def _usage_failure(error: Any) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return 0  # raising it has printed the help
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    message = " ".join(error.format_message().split())
    return _fail(f"{message.rstrip('.')}{hint}", error.exit_code)


def _fail(line: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"search: {line}", file=sys.stderr, flush=True)  # noqa: T201
    return code


def _close_pipe() -> int:
    """The reader of a pipe went away, as `| head` does: end without a word."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
