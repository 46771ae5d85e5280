"""Trials that ended without a result, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section

if TYPE_CHECKING:
    from search.answers.answer import Answer

MOST_CODES = 8


def section(answer: Answer, room: Room | None) -> Section:
    """Failures grouped by cause; on pages only, a terminal has the first one."""
    found = answer.spent.failures
    if room is not None:
        return Section("Failures")
    if not found:
        line = "every trial that has ended gave a result" if answer.leaders else ""
        return Section("Failures", lines=(line,) if line else ())
    header = ("end", "cause", ">trials", "stacks", ">first trial")
    rows = tuple(
        (
            failure.state,
            failure.cause,
            str(failure.n),
            ", ".join(failure.codes[:MOST_CODES])
            + (f" and {len(failure.codes) - MOST_CODES} more" * (len(failure.codes) > MOST_CODES)),
            str(failure.first),
        )
        for failure in found
    )
    return Section("Failures", header, rows)
