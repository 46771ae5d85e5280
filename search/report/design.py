"""What a design says of cheap layers: their number, their place, then each layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.answers.family import ALPHA
from search.answers.variance import few_words
from search.answers.verdicts import UNDECIDED
from search.report.sections import Room, Section
from search.wording import ABSENT, difference_text, in_unit, plural, value_text

if TYPE_CHECKING:
    from search.answers.anova import FTest
    from search.answers.answer import Answer
    from search.answers.design import Design
    from search.answers.design_layers import DesignLayer
    from search.answers.intervals import Interval
    from search.answers.question import Question

SMALLEST_P = 0.001
ABOUT_COUNTS = (
    "Stacks of two mixers, fixed before any result was known, so that what is read from them was "
    "not chosen for looking good. An F-test holds the differences against the noise: the smaller "
    "its p, the less likely they are chance."
)
ABOUT_LAYERS = (
    "What it changes to put the cheap mixer into one layer instead of attention: averaged over the "
    "stacks of the design, and in the chosen stack alone. Where layers act together the two differ."
)


def count_section(answer: Answer, design: Design, room: Room | None) -> Section:
    """How many layers may be cheap, then whether their place matters."""
    question = answer.question
    what = f"selection {question.objective} by number of layers with {design.cheap}"
    lines = [
        f"the number: {test_text(design.count_test)}{design.count_word}"
        + (f" ({design.count_reason})" if design.count_reason and design.count_test else ""),
        f"their place, given the number: {test_text(design.position_test)}"
        f"{design.position_word}{move_text(design, question)}",
    ]
    if room is not None:
        cells = [
            f"{count.n_cheap}: {value_text(count.mean.estimate, question)}"
            for count in design.counts
        ]
        return Section("Cheap layers", lines=(f"{what}: {'; '.join(cells)}", "; ".join(lines)))
    header = (f">layers with {design.cheap}", ">stacks", ">mean", ">95 % interval")
    rows = tuple(
        (
            str(count.n_cheap),
            str(count.n),
            value_text(count.mean.estimate, question),
            ends_of(count.mean, question),
        )
        for count in design.counts
    )
    head = f"{what}; {design_text(design)}"
    return Section(
        "Cheap layers", header, rows, (head, error_text(design), *lines), about=ABOUT_COUNTS
    )


def layer_section(answer: Answer, design: Design, room: Room | None) -> Section:
    """Each layer, averaged over the design and in the chosen stack."""
    question = answer.question
    what = f"{design.cheap} - attention, averaged over {design_text(design)}; exploratory"
    if room is not None:
        shown = sorted(design.layers, key=_weight)[: room.layers]
        lines = [_line(layer, design, question) for layer in sorted(shown, key=lambda x: x.layer)]
        if len(design.layers) > len(lines):
            more = plural(len(design.layers) - len(lines), "more layer")
            lines.append(f"{more} in the full report")
        return Section("By layer", lines=(what, *lines))
    stack = design.stack or "the pick"
    unit = in_unit(question)
    header = (
        ">layer",
        f">averaged{unit}",
        "verdict",
        f">in {stack}{unit}",
        "verdict",
        ">seeds",
    )
    rows = tuple(
        (
            str(layer.layer),
            difference_text(layer.average, question),
            word_text(layer.average_word, layer.average_reason),
            difference_text(layer.in_stack, question),
            word_text(layer.stack_word, layer.stack_reason),
            str(layer.n_pairs) if layer.n_pairs else ABSENT,
        )
        for layer in design.layers
    )
    split = [layer for layer in design.layers if layer.disagree]
    notes = [_disagreement(layer, design, question) for layer in split]
    if design.together_test is not None:
        notes.insert(0, f"do layers act together: {test_text(design.together_test).rstrip(': ')}")
    return Section("By layer", header, rows, (what, *notes), about=ABOUT_LAYERS)


def test_text(test: FTest | None) -> str:
    """``F(3, 8) = 0.75, p = 0.55: ``; nothing where there is no test.

    What is decided on few degrees of freedom says so.
    """
    if test is None:
        return ""
    p = f"p < {SMALLEST_P:g}" if test.p_value < SMALLEST_P else f"p = {test.p_value:.2g}"
    few = few_words(test.df2) if test.p_value <= ALPHA else ""
    return f"F({test.df1:.3g}, {test.df2:.3g}) = {test.f:.3g}, {p}{f' ({few})' if few else ''}: "


def move_text(design: Design, question: Question) -> str:
    """The move of one cheap layer that changes most, where something can be said of it."""
    if design.move is None:
        return ""
    origin, target = design.move.origin, design.move.target
    change = difference_text(design.move.interval, question)
    return f" (at most, {design.cheap} in layer {target} instead of {origin}: {change})"


def design_text(design: Design) -> str:
    """Which design it is, and whether it is complete."""
    seeds = f" x {plural(design.n_seeds, 'seed')}" if design.n_seeds > 1 else ""
    if design.is_complete:
        return f"a {design.kind} of {design.n_runs} stacks{seeds}"
    return f"a {design.kind}, incomplete: {design.n_runs} of {design.n_planned} stacks{seeds}"


def error_text(design: Design) -> str:
    """What the design's intervals rest on."""
    error = design.error
    if error.sd is None:
        return f"no intervals: {error.reason}"
    few = f" ({error.reason})" if error.reason else ""
    return f"error: {error.source}, {plural(error.df, 'degree')} of freedom{few}"


def word_text(word: str, reason: str) -> str:
    """A word, with the reason where it is undecided for one."""
    return f"{word} ({reason})" if word == UNDECIDED and reason else word


def ends_of(interval: Interval, question: Question) -> str:
    """The ends of a mean's interval; a dash where it has none."""
    if interval.low is None or interval.high is None:
        return ABSENT
    return f"{value_text(interval.low, question)} .. {value_text(interval.high, question)}"


def _weight(layer: DesignLayer) -> tuple[bool, bool, int]:
    """Layers whose two readings disagree first, then decided ones."""
    return not layer.disagree, layer.average_word == UNDECIDED, layer.layer


def _line(layer: DesignLayer, design: Design, question: Question) -> str:
    word = word_text(layer.average_word, layer.average_reason)
    text = f"layer {layer.layer}: {difference_text(layer.average, question)} {word}"
    inside = f"in {design.stack}, {difference_text(layer.in_stack, question)} {layer.stack_word}"
    return f"{text}; but {inside}" if layer.disagree else text


def _disagreement(layer: DesignLayer, design: Design, question: Question) -> str:
    return (
        f"layer {layer.layer} acts together with others: on average "
        f"{difference_text(layer.average, question)}, in {design.stack} "
        f"{difference_text(layer.in_stack, question)}"
    )
