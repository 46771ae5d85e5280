"""The study's limits and what keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import plural, scaled, time_text

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.spec.limits import Limit

ABOUT = (
    "Limits on parameters and FLOPs are known before training: stacks over them are never trained, "
    "save as baselines. The others show in training; a stack is held to the median of its runs."
)


def section(answer: Answer, room: Room | None) -> Section:
    """The limits, how many stacks keep them, and whether all-attention does."""
    bounds = answer.bounds
    if not bounds.limits:
        return Section("Limits")
    named = ", ".join(f"{limit.name} {bound_text(limit)}" for limit in bounds.limits)
    total = bounds.n_within + bounds.n_over
    kept = f"{bounds.n_within} of {plural(total, 'trained stack')} keep them"
    lines = [f"{named}: {kept}"]
    if total and not bounds.n_within:
        lines.append("no trained stack keeps the limits, so there is no pick")
    if bounds.reference_is_within is False:
        lines.append("all-attention is over a limit: it is compared with, but cannot be the pick")
    if room is not None:
        lines = ["; ".join([lines[0], *(line.partition(":")[0] for line in lines[1:])])]
    return Section("Limits", lines=tuple(lines), about=ABOUT)


def bound_text(limit: Limit) -> str:
    """A limit's bound in the unit that fits."""
    if limit.measure.origin == "metric":
        return f"{limit.bound:g} {limit.measure.unit}".rstrip()
    return time_text(limit.bound) if limit.measure.unit == "s" else scaled(limit.bound)
