"""Sentences about what a stack costs and gains; parts of the answer's paragraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.report.speedup import ratio_text
from search.wording import joined, measure_name

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.costs import Saving
    from search.answers.leaders import Leader
    from search.answers.speedup import SpeedUp

MOST_CODES = 4


def costs(answer: Answer) -> str:
    """What the candidate saves against all-attention, counted and as measured."""
    saving = next((found for found in answer.savings if found.against == "reference"), None)
    candidate = _candidate_code(answer)
    if saving is None or candidate is None:
        return ""
    counted, measured = _counted(saving), _timed(saving, answer.speed_up)
    if not counted and not measured:
        return ""
    device = f" on {answer.reach.device}" if answer.reach.device else ""
    parts = [f"has {joined(counted)}"] if counted else []
    parts += [f"takes, as measured{device}, {joined(measured)}"] if measured else []
    return f"Compared with {candidate}, all-attention {joined(parts)}."


def speed_up(answer: Answer) -> str:
    """Whether the speed-up over all-attention is real."""
    found = answer.speed_up
    if found is None or found.measured is None:
        return ""
    faster = f"{found.candidate} is {ratio_text(found.measured)} times as fast as all-attention"
    because = f" ({'; '.join(found.because)})" if found.because else ""
    words = {
        "yes": f"The speed-up in a forward pass is real: {faster}, and no shorter model is as "
        "fast and as good.",
        "no": f"The speed-up in a forward pass is not real: {faster}{because}.",
    }
    undecided = f"Whether the speed-up in a forward pass is real is undecided: {faster}{because}."
    return words.get(found.real, undecided)


def front(answer: Answer) -> str:
    """Which stacks nothing beats, where several objectives were asked for."""
    measures = answer.pareto.measures
    if len(answer.question.measures) < 2:
        return ""
    weighed = joined([measure_name(measure.name) for measure in measures])
    on = [point.code for point in answer.pareto.points if point.word == "on the front"]
    unsure = [point.code for point in answer.pareto.points if point.word == "possibly"]
    said = f"Weighing {weighed}, "
    if on:
        possibly = f", and possibly {some(unsure)}" if unsure else ""
        return f"{said}nothing else beats {some(on)}{possibly}."
    if unsure:
        return f"{said}nothing else may beat {some(unsure)}; the noise leaves it open."
    return f"{said}which stacks nothing else beats is undecided."


def some(codes: Sequence[str]) -> str:
    """The first few codes, and that there are others."""
    shown = [*codes[:MOST_CODES], "others"] if len(codes) > MOST_CODES else codes
    return joined(shown)


def leader(answer: Answer, arch_id: str | None) -> Leader | None:
    """The line of the leaderboard with this architecture."""
    return next((row for row in answer.leaders if arch_id and row.arch_id == arch_id), None)


def _candidate_code(answer: Answer) -> str | None:
    is_reference = answer.pick == answer.reference
    found = leader(answer, answer.rival if is_reference else answer.pick)
    return found.code if found else None


def _counted(saving: Saving) -> list[str]:
    counts = ((saving.params, "parameters"), (saving.flops, "FLOPs"))
    return [f"{ratio:.2f} times the {what}" for ratio, what in counts if ratio]


def _timed(saving: Saving, speed_up: SpeedUp | None) -> list[str]:
    """Times as ratios; that of a forward pass has a sentence of its own where it was judged."""
    times = [(saving.step, "a training step")]
    if speed_up is None or speed_up.measured is None:
        times.append((saving.latency, "a forward pass"))
    return [f"{ratio:.2f} times as long for {what}" for ratio, what in times if ratio]
