"""Whether the probe foretells the objective better than trivial predictors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.answers.predictors import MIN_ARCHITECTURES, PROBE, PROBE_INIT
from search.report.sections import Room, Section
from search.wording import ABSENT, ends_text

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.predictors import Predictor, Predictors

ABOUT = (
    "The probe reads from a network, without the task, how well it tells contexts apart. "
    "It is worth using only where it foretells the result better than what is known "
    "without any training."
)
MOST_TRIVIAL = 3
"""Trivial predictors shown on a terminal, the strongest ones."""


def section(answer: Answer, room: Room | None) -> Section:
    """Whether the probe foretells the objective better than trivial predictors."""
    found = answer.predictors
    if answer.question.steps is None:
        return Section("Probe")
    if not found.found:
        line = f"too few architectures to correlate it ({found.n} of {MIN_ARCHITECTURES})"
        return Section("Probe", lines=(line,), about=ABOUT)
    shown = _shown(found, everything=room is None)
    cells = [
        _predictor(predictor, with_ends=room is None or not predictor.is_trivial)
        for predictor in shown
    ]
    lines = [
        f"rank correlation with {answer.question.objective} ({found.n} architectures): "
        + "; ".join(cells),
        *_verdicts(found),
    ]
    return Section("Probe", lines=tuple(lines), about=ABOUT)


def _shown(found: Predictors, *, everything: bool) -> list[Predictor]:
    """All predictors, or the probes, the first reading and the strongest trivial ones."""
    if everything:
        return list(found.found)
    trivial = sorted((one for one in found.found if one.is_trivial), key=lambda one: -one.strength)
    return [one for one in found.found if not one.is_trivial] + trivial[:MOST_TRIVIAL]


def _verdicts(found: Predictors) -> list[str]:
    """A line where a trivial predictor does at least as well as a probe; one for both if alike."""
    both = found.better_than_init == found.better
    named = [(PROBE_INIT, found.better_than_init), (PROBE, found.better)]
    if both and found.better:
        named = [("probe, before and after training,", found.better)]
    return [
        f"the {probe} does no better than a trivial predictor: {', '.join(better)}"
        for probe, better in named
        if better
    ]


def _predictor(predictor: Predictor, *, with_ends: bool) -> str:
    correlation = predictor.correlation
    if correlation is None:
        return f"{predictor.name} {ABSENT}"
    # Of a perfect order the ends are the estimate itself.
    is_point = f"{correlation.low:.2f}" == f"{correlation.high:.2f}"
    ends = f" {ends_text(correlation, 2)}" if with_ends and not is_point else ""
    return f"{predictor.name} {correlation.estimate:+.2f}{ends}"
