"""One layer at a time: averaged over a design, and in the recommended stack."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from search.answers.anova import Estimates
from search.answers.design_error import NO_ERROR
from search.answers.design_table import LIST, Labels, Readings, Table, Weights
from search.answers.family import Family
from search.answers.intervals import Difference, Interval, Part
from search.answers.question import Question
from search.answers.verdicts import UNDECIDED, cheap_word, turned

INCOMPLETE = "the design is incomplete"
UNBALANCED = "the stacks are no balanced design"
NO_STACK = "there is no pick"
NOT_TRAINED = "the changed stack is not trained"

PartsOf = Callable[[Weights], tuple[Part, ...]]


@dataclass(frozen=True, slots=True)
class DesignLayer:
    """What a cheap mixer in one layer costs: cheap minus reference, read in two ways.

    The words are those of the verdicts, ``undecided`` where an interval does not carry one; the
    reasons say why there is no estimate, no interval or no word.

    Attributes:
        layer: Its index, 0 next to the embedding.
        average: Averaged over the stacks of the design; None where these cannot tell.
        average_word: Its word.
        average_reason: Why it has none.
        in_stack: In the recommended stack: between it and the one with this layer changed.
        stack_word: Its word.
        stack_reason: Why it has none.
        mixer: The mixer that ``in_stack`` holds against the reference.
        n_pairs: Seeds that both stacks have.
        disagree: The two differ by more than their errors, or have different decided words.
    """

    layer: int
    average: Interval | None
    average_word: str
    average_reason: str
    in_stack: Interval | None
    stack_word: str
    stack_reason: str
    mixer: str
    n_pairs: int
    disagree: bool


def layers_of(
    table: Table,
    parts_of: PartsOf,
    readings: Readings,
    pick: Labels | None,
    question: Question,
    family: Family,
) -> tuple[DesignLayer, ...]:
    """Reads every layer that the design varies, in both ways.

    Two readings a layer, or the family's layer contrasts where these are more, hold together. The
    pick is the best of all stacks by the very readings that are compared, so what is read in it
    holds for whichever stack it might have been: every layer of every stack counts.

    Args:
        table: The design.
        parts_of: Parts of the variance of a weighted sum of runs.
        readings: All readings of the study.
        pick: The recommended stack.
        question: The study's facts.
        family: How many contrasts of layers are looked at together.
    """
    layers = table.screening.layers
    n_contrasts = max(family.layer_contrasts, 2 * len(layers))
    n_stacks = len({labels for labels, _ in readings})
    level = 1 - family.layer_alpha / n_contrasts
    chosen_level = 1 - family.layer_alpha / max(n_contrasts, n_stacks * len(layers))
    found = []
    for layer, everywhere in zip(layers, average_weights(table), strict=True):
        here = stack_weights(table, readings, pick, layer)
        average = _interval(everywhere, readings, parts_of, level)
        in_stack = _interval(here, readings, parts_of, chosen_level)
        average_word = cheap_word_of(average, question) if is_fair(table) else UNDECIDED
        stack_word = cheap_word_of(in_stack, question)
        found.append(
            DesignLayer(
                layer=layer,
                average=average,
                average_word=average_word,
                average_reason=_why_average(table, average),
                in_stack=in_stack,
                stack_word=stack_word,
                stack_reason=_why_stack(in_stack, pick),
                mixer=_mixer(table, pick, layer),
                n_pairs=len(here or ()) // 2,
                disagree=(
                    UNDECIDED not in (average_word, stack_word) and average_word != stack_word
                )
                or _differ(everywhere, here, readings, parts_of, level),
            )
        )
    return tuple(found)


def is_fair(table: Table) -> bool:
    """Whether averages over the stacks mean the layer they are named after."""
    return table.is_complete and is_balanced(table)


def cheap_word_of(interval: Interval | None, question: Question) -> str:
    """The verdict's word on an interval, ``undecided`` where it has no ends."""
    ends = turned(interval, question) if interval is not None else None
    return UNDECIDED if ends is None else cheap_word(*ends, question.tolerance)


def _why_average(table: Table, interval: Interval | None) -> str:
    if not table.is_complete:
        return INCOMPLETE
    if not is_balanced(table):
        return UNBALANCED
    return NO_ERROR if interval is not None and interval.low is None else ""


def _why_stack(interval: Interval | None, pick: Labels | None) -> str:
    if interval is None:
        return NO_STACK if pick is None else NOT_TRAINED
    return NO_ERROR if interval.low is None else ""


def _mixer(table: Table, pick: Labels | None, layer: int) -> str:
    """The mixer that is held against the reference in the pick's layer."""
    if pick is None or layer >= len(pick) or pick[layer] == table.screening.reference:
        return table.screening.cheap
    return pick[layer]


def _interval(
    weights: Weights | None, readings: Readings, parts_of: PartsOf, level: float
) -> Interval | None:
    if weights is None:
        return None
    estimate = math.fsum(weight * readings[key] for key, weight in weights.items())
    return Difference(estimate, parts_of(weights), NO_ERROR).interval(level)


def _differ(
    left: Weights | None, right: Weights | None, readings: Readings, parts_of: PartsOf, level: float
) -> bool:
    """Whether two estimates differ by more than chance, the runs that both use taken once."""
    if left is None or right is None:
        return False
    both = {key: left.get(key, 0.0) - right.get(key, 0.0) for key in (*left, *right)}
    interval = _interval(both, readings, parts_of, level)
    if interval is None or interval.low is None or interval.high is None:
        return False
    return interval.low > 0 or interval.high < 0


def average_weights(table: Table) -> list[Weights | None]:
    """Weights of each layer's main effect: half of a balanced design's stacks minus the others.

    In an incomplete one they are those of least squares over additive layers; None where a layer
    cannot be told from others, and for lists that are no balanced design.
    """
    base = table.only([run in table.base for run in table.runs])
    places = range(len(table.screening.layers))
    if not base.runs or (table.kind == LIST and not is_balanced(table)):
        return [None for _ in places]
    estimates = Estimates(np.hstack([np.ones((len(base.runs), 1)), base.x]))
    found = [estimates.weights({place + 1: 1.0}) for place in places]
    return [None if weights is None else base.weights(weights) for weights in found]


def is_balanced(table: Table) -> bool:
    """Whether each layer is cheap in half of the base's stacks, whatever the others are."""
    kept = [index for index, run in enumerate(table.runs) if run in table.base]
    signs = 2 * table.x[kept] - 1
    crossed = signs.T @ signs
    return bool((signs.sum(axis=0) == 0).all() and (crossed == np.diag(np.diag(crossed))).all())


def stack_weights(
    table: Table, readings: Readings, pick: Labels | None, layer: int
) -> Weights | None:
    """Weights of cheap minus reference in one layer of the pick, over the seeds that both have."""
    if pick is None or layer >= len(pick):
        return None
    reference = table.screening.reference
    is_reference = pick[layer] == reference
    other = table.screening.cheap if is_reference else reference
    changed = (*pick[:layer], other, *pick[layer + 1 :])
    seeds = [seed for labels, seed in readings if labels == pick and (changed, seed) in readings]
    if not seeds:
        return None
    sign = -1.0 if is_reference else 1.0
    ours = {(pick, seed): sign / len(seeds) for seed in seeds}
    return ours | {(changed, seed): -sign / len(seeds) for seed in seeds}
