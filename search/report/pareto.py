"""Which stacks nothing else beats in all that is weighed, and how surely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import measure_name, plural, scaled, time_text, value_text

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.pareto import FrontPoint
    from search.answers.question import Question
    from search.spec.measures import Measure

ABOUT = (
    "A stack is on the front where no other is at least as good in everything that is weighed. The "
    "share says how often it is there when the readings are drawn anew from their noise."
)
SHOWN = ("on the front", "possibly", "unknown")
MOST_ROWS = 12
MOST_CODES = 4


def section(answer: Answer, room: Room | None) -> Section:
    """The front; where one objective is asked for, beside a counted cost."""
    front, question = answer.pareto, answer.question
    points = [point for point in front.points if point.is_best or point.word in SHOWN[:2]]
    if not points:
        return Section("Front")
    if room is not None:
        return _brief(answer, points) if len(question.measures) > 1 else Section("Front")
    header = ("layers", *(f">{_name(measure)}" for measure in front.measures), "place", ">share")
    rows = tuple(
        (
            point.code,
            *(
                _value(value, measure, question)
                for value, measure in zip(point.values, front.measures, strict=True)
            ),
            point.word,
            "-" if point.probability is None else f"{point.probability:.0%}",
        )
        for point in points[:MOST_ROWS]
    )
    lines = ["means on the selection split over the seeds that all stacks share; exploratory"]
    if len(points) > MOST_ROWS:
        lines.append(f"{plural(len(points) - MOST_ROWS, 'more stack')} may be on the front")
    if front.reason:
        lines.append(front.reason)
    if front.conditions:
        device, dtype, batch, length = front.conditions
        lines.append(f"times on {device}, {dtype}, batch {batch} of {length} tokens")
    if front.left_out:
        lines.append(f"{plural(front.left_out, 'architecture')} without all of these readings")
    return Section("Front", header, rows, tuple(lines), about=ABOUT)


def _brief(answer: Answer, points: list[FrontPoint]) -> Section:
    names = ", ".join(measure_name(measure.name) for measure in answer.pareto.measures)
    parts = []
    for word in SHOWN:
        codes = [point.code for point in points if point.word == word]
        if codes:
            more = len(codes) - MOST_CODES
            shown = " ".join(codes[:MOST_CODES]) + (f" and {more} more" if more > 0 else "")
            parts.append(f"{word} {shown}")
    return Section("Front", lines=(f"{names}: {'; '.join(parts)}",) if parts else ())


def _name(measure: Measure) -> str:
    has_unit = measure.origin == "metric" and measure.unit
    return measure_name(measure.name) + (f" ({measure.unit})" if has_unit else "")


def _value(value: float, measure: Measure, question: Question) -> str:
    if measure.origin == "metric":
        return value_text(value, question)
    return time_text(value) if measure.unit == "s" else scaled(value)
