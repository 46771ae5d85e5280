"""Whether the probe foretells the objective better than trivial predictors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.answers.predictors import MIN_ARCHITECTURES, PROBE
from search.report.sections import Room, Section
from search.report.wording import ABSENT, ends_text

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.predictors import Predictor

ABOUT = (
    "The probe reads from a network, without the task, how well it tells contexts apart. "
    "It is worth using only where it foretells the result better than what is known "
    "without any training."
)


def section(answer: Answer, room: Room | None) -> Section:
    """Whether the probe foretells the objective better than trivial predictors."""
    found = answer.predictors
    if not found.found:
        line = f"too few architectures to correlate it ({found.n} of {MIN_ARCHITECTURES})"
        return Section("Probe", lines=(line,), about=ABOUT)
    cells = [
        _predictor(predictor, with_ends=room is None or predictor.name == PROBE)
        for predictor in found.found
    ]
    lines = [
        f"rank correlation with {answer.question.objective} ({found.n} architectures): "
        + "; ".join(cells)
    ]
    if found.better:
        lines.append(f"no better than a trivial predictor: {', '.join(found.better)}")
    return Section("Probe", lines=tuple(lines), about=ABOUT)


def _predictor(predictor: Predictor, *, with_ends: bool) -> str:
    correlation = predictor.correlation
    if correlation is None:
        return f"{predictor.name} {ABSENT}"
    ends = f" {ends_text(correlation, 2)}" if with_ends else ""
    return f"{predictor.name} {correlation.estimate:+.2f}{ends}"
