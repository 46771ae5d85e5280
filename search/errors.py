"""What a user can cause, and the exit code each leads to.

The message of each error is one line: what is wrong, where, and what to do, in words that are right
for whoever reads it: at a command line, over HTTP, or in Python. What does it at a command line
alone stands apart, in ``command``. The command line prints both and ends with ``exit_code``;
scripts may rely on these codes.

====  =====================================================================================
code  meaning
====  =====================================================================================
0     done, including "nothing left to do" (budget spent, space used up)
1     the run failed: every trial failed, or a check did not hold
2     the input is wrong: a spec, a budget, a name, a file, an unknown or broken plugin
3     the store cannot be used: unreadable, of another program, newer, locked, disk full
4     nothing there: no such study or trial, or no finished trial yet
130   interrupted (Ctrl-C, SIGTERM); the same command continues
====  =====================================================================================
"""

from __future__ import annotations

from typing import ClassVar


class SearchError(Exception):
    """Base of every error that a user can cause; its text is one clear line.

    Args:
        message: What is wrong, where, and what to do.
        command: The option or command that does so ("--name NEW"), printed behind the message.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "", *, command: str = "") -> None:
        super().__init__(message)
        self.command = command


class RunFailedError(SearchError):
    """A run came to an end without success: all trials failed, or a check did not hold."""

    exit_code: ClassVar[int] = 1


class InputError(SearchError, ValueError):
    """A spec, budget, name or file is wrong, or a plugin is unknown or broken."""

    exit_code: ClassVar[int] = 2


class AccessError(InputError):
    """A service refuses the token, or cannot prove that it is the one that is meant."""


class StoreError(SearchError):
    """The store is unreadable, of another program, of a newer version, locked or full."""

    exit_code: ClassVar[int] = 3


class StoreAwayError(StoreError):
    """The store does not answer, or is locked: it may come back, and then nothing was lost."""


class NothingThereError(SearchError):
    """There is no such study or trial, or no trial has finished yet."""

    exit_code: ClassVar[int] = 4


class InterruptedRunError(SearchError):
    """The run was interrupted; what it had in hand went back to the queue."""

    exit_code: ClassVar[int] = 130
