"""Turns what ended a trial early into its recorded cause."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from pydantic import ValidationError

from mixers.errors import MixerError
from mixers.explain import explain
from search.errors import SearchError
from search.messages import Cause, TrialFailure

MESSAGE_LENGTH = 500
TRACEBACK_LENGTH = 20_000

# How torch, the C++ runtime and Python say that memory ran out, in an error or in a log.
OUT_OF_MEMORY = re.compile(
    r"can(no|')t allocate memory|out of memory|bad_alloc|bad allocation|MemoryError",
    re.IGNORECASE,
)
_MACHINERY = re.compile(r"[/\\](torch|pytorch_lightning|lightning_fabric)[/\\]|^<")


def failure_of(error: BaseException) -> TrialFailure:
    """Describes an exception: its cause, one line with where it was raised, the traceback."""
    trace = "".join(traceback.format_exception(error))
    return TrialFailure(
        cause=cause_of(error), message=one_line(_message(error)), traceback=clean_tail(trace)
    )


def cause_of(error: BaseException) -> Cause:
    """Which cause an exception stands for; any memory that could not be had is out_of_memory."""
    from_torch = any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)
    if isinstance(error, MemoryError) or from_torch:
        return "out_of_memory"
    if isinstance(error, RuntimeError | OSError) and OUT_OF_MEMORY.search(str(error)):
        return "out_of_memory"
    if any(kind.__name__ == "ProofError" for kind in type(error).__mro__):
        return "proof"
    return "error"


def one_line(text: str) -> str:
    """The first line of a text, cut to what a table can hold."""
    first = next((line.strip() for line in clean(text).splitlines() if line.strip()), "")
    return first if len(first) <= MESSAGE_LENGTH else first[: MESSAGE_LENGTH - 3] + "..."


def clean_tail(text: str) -> str:
    """The end of a long text, where a traceback says what happened."""
    return clean(text)[-TRACEBACK_LENGTH:]


def clean(text: str) -> str:
    """Text that every database and JSON reader takes: no NUL, no lone surrogate."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _message(error: BaseException) -> str:
    if isinstance(error, SearchError | MixerError):
        # The cause says it already.
        return str(error).removeprefix("proof: ")
    if isinstance(error, ValidationError):
        return "; ".join(explain(error))
    name = type(error).__name__
    if isinstance(error, SystemExit):
        return f"the code of the trial tried to exit (SystemExit: {error.code})"
    where = _origin(error)
    detail = f": {error}" if str(error).strip() else ""
    return f"{name}{f' in {where}' if where else ''}{detail}"


def _origin(error: BaseException) -> str:
    # The innermost frame that is not torch's or Lightning's: there the cause can be seen.
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not _MACHINERY.search(frame.filename):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""
