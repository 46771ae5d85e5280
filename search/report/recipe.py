"""Whether the verdicts hang on the learning rate: what the sweep found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import OTHERS, difference_text, joined, role_words, value_text

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.recipe import Margin, RecipeCheck, SweptRates

ABOUT = (
    "Each pure stack was trained at several learning rates, since one rate may suit a mixer better "
    "than another. Where the best rates of the compared stacks are apart, the finalists were "
    "confirmed at those too, and a verdict needs the same sign at the shared rate and at each "
    "stack's own."
)


def section(answer: Answer, room: Room | None) -> Section:
    """The rates, the best of each stack, and both margins where they differ."""
    check = answer.recipe
    if check is None:
        return Section("Recipe")
    lines = [_found(check)]
    for margin in check.margins:
        lines.append(_margin(margin, answer))
    if check.not_swept and room is None:
        names = joined([role_words(role) for role in check.not_swept])
        lines.append(f"the budget left rates untried for: {names}")
    if room is not None:
        return Section("Recipe", lines=tuple(lines), about=ABOUT)
    header = ("stack", *(f">{rate:g}" for rate in check.rates), ">best rate")
    rows = tuple(tuple(_cells(stack, check, answer)) for stack in check.stacks)
    return Section("Recipe", header, rows, tuple(lines), about=ABOUT)


def _found(check: RecipeCheck) -> str:
    rates = ", ".join(f"{rate:g}" for rate in check.rates)
    known = [stack for stack in check.stacks if stack.best is not None]
    best = [f"{stack_name(stack, check)} {stack.best:g}" for stack in known]
    line = f"learning rates {rates} swept"
    if not best:
        return f"{line}: no stack at all of them yet"
    line += f"; best: {', '.join(best)}"
    edge = [stack_name(stack, check) for stack in known if stack.at_edge]
    if edge:
        line += f" (at the edge of the sweep: {', '.join(edge)})"
    if check.apart:
        return line
    if check.is_known:
        return f"{line}; the compared stacks agree within a factor of two"
    return f"{line}; whether the compared stacks agree is not known"


def stack_name(stack: SweptRates, check: RecipeCheck) -> str:
    """The stack's code, with its role where another swept stack has the same code."""
    is_alone = sum(other.code == stack.code for other in check.stacks) == 1
    return stack.code if is_alone else f"{stack.code} ({role_words(stack.role)})"


def _margin(margin: Margin, answer: Answer) -> str:
    question = answer.question
    agree = "same sign" if margin.same_sign else "the sign depends on the rate"
    return (
        f"{margin.candidate} - {margin.other} ({OTHERS[margin.against]}): "
        f"{difference_text(margin.own, question)} at their own rates "
        f"({margin.candidate_rate:g}, {margin.other_rate:g}), "
        f"{difference_text(margin.shared, question)} at the shared one: {agree}"
    )


def _cells(stack: SweptRates, check: RecipeCheck, answer: Answer) -> Iterator[str]:
    yield stack_name(stack, check)
    readings = dict(stack.readings)
    for rate in check.rates:
        if rate in readings and readings[rate] is None:
            yield "diverged"
        else:
            yield value_text(readings.get(rate), answer.question)
    yield "-" if stack.best is None else f"{stack.best:g}"
