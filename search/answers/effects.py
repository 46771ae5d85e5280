"""Effects of cheap layers: first their count, then their position, then layer by layer.

All of it is exploration: the architectures were chosen by a sampler, and read on the selection
split that the sampler saw. Layer effects are differences of matched pairs, never a regression on
samples that a sampler chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from mixers.notation import kind_of
from search.answers.arms import EXPLORATION, Arm, value_of
from search.answers.intervals import Interval, known_sd_interval, mean_interval
from search.answers.noise import Noise
from search.answers.question import Question
from search.answers.verdicts import FAMILY_LEVEL, UNDECIDED, cheap_word, turned
from search.rows import TrialRow

MIN_DF_FOR_ONE_PAIR = 6
NO_PAIRS = "no pairs"
ONE_PAIR = "one pair"


@dataclass(frozen=True, slots=True)
class CountRow:
    """Architectures of full depth with so many layers that are not of the reference kind."""

    n_cheap: int
    n: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Position:
    """First half cheap minus last half cheap: does the place matter, given the count?

    ``word`` is ``cheap first``, ``cheap last``, ``no matter`` (within the tolerance) or
    ``undecided``; ``n`` counts the pairs with equal seeds.
    """

    first: str
    last: str
    n: int
    interval: Interval | None
    word: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LayerEffect:
    """Replacing attention in one layer by another mixer, all else equal.

    Attributes:
        layer: index of the layer, 0 next to the embedding.
        mixer: notation of the other mixer.
        n: matched pairs: same seed, same mixers in all other layers.
        interval: of (mixer - attention) on the selection split; None without a pair.
        word: verdict word, ``undecided`` where the pairs do not carry one.
        reason: why it is undecided for want of pairs.
    """

    layer: int
    mixer: str
    n: int
    interval: Interval | None
    word: str
    reason: str = ""


def counts_of(arms: Sequence[Arm], question: Question) -> tuple[CountRow, ...]:
    """Tables the selection objective by the number of cheap layers."""
    kind = kind_of(question.reference)
    grouped: dict[int, list[float]] = {}
    for arm in arms:
        mean = arm.selection_mean
        if arm.n_layers == question.n_layers and mean is not None:
            grouped.setdefault(arm.n_layers - arm.n_of(kind), []).append(mean)
    return tuple(
        CountRow(n_cheap, len(values), fmean(values), min(values), max(values))
        for n_cheap, values in sorted(grouped.items())
    )


def position_of(rows: Sequence[TrialRow], question: Question, noise: Noise) -> Position | None:
    """Compares the two half-and-half stacks; None where they are not both in the rows.

    Two or more seeds give a paired t interval. One pair is held against the repeat SD of the
    confirmed architectures, if that has at least 6 degrees of freedom.
    """
    half = question.n_layers // 2
    rest = question.n_layers - half
    first = (question.cheap,) * half + (question.reference,) * rest
    last = (question.reference,) * rest + (question.cheap,) * half
    by_seed: dict[tuple[str, ...], dict[int, float]] = {first: {}, last: {}}
    codes = {}
    for row, value in _read(rows, question):
        if row.mixers in by_seed:
            by_seed[row.mixers].setdefault(row.seed, value)
            codes[row.mixers] = row.code
    if not half or len(codes) < 2:
        return None
    seeds = sorted(by_seed[first].keys() & by_seed[last].keys())
    differences = [by_seed[first][seed] - by_seed[last][seed] for seed in seeds]
    if not differences:
        return Position(codes[first], codes[last], 0, None, UNDECIDED, NO_PAIRS)
    if len(differences) == 1 and noise.sd is not None and noise.df >= MIN_DF_FOR_ONE_PAIR:
        interval = known_sd_interval(differences[0], noise.sd, noise.df, FAMILY_LEVEL)
    else:
        interval = mean_interval(differences, FAMILY_LEVEL)
    ends = turned(interval, question)
    word = UNDECIDED if ends is None else _position_word(*ends, question.tolerance)
    reason = ONE_PAIR if interval.low is None and len(differences) == 1 else interval.reason
    return Position(codes[first], codes[last], len(differences), interval, word, reason)


def _position_word(low: float, high: float, tolerance: float) -> str:
    if -tolerance < low and high < tolerance:
        return "no matter"
    if high < 0:
        return "cheap first"
    return "cheap last" if low > 0 else UNDECIDED


def layer_effects_of(
    rows: Sequence[TrialRow], question: Question, mixers: Sequence[str], level: float
) -> tuple[LayerEffect, ...]:
    """Effects of replacing attention in each layer by each mixer, from matched pairs.

    Pairs of one cell share no architecture, so their noise is independent; repeats of a pair would
    share what the documents of the split have for those two.

    Args:
        rows: the study's rows.
        question: the study's facts.
        mixers: notations of the mixers to report, beside the reference.
        level: confidence level of each interval (`Family.layer_level`).
    """
    pairs = _matched_pairs(rows, question)
    cells = [
        (layer, mixer, pairs.get((layer, mixer), []))
        for layer in range(question.n_layers)
        for mixer in mixers
        if mixer != question.reference
    ]
    return tuple(_layer_effect(*cell, question, level) for cell in cells)


def _layer_effect(
    layer: int, mixer: str, differences: Sequence[float], question: Question, level: float
) -> LayerEffect:
    if not differences:
        return LayerEffect(layer, mixer, 0, None, UNDECIDED, NO_PAIRS)
    interval = mean_interval(differences, level)
    ends = turned(interval, question)
    word = UNDECIDED if ends is None else cheap_word(*ends, question.tolerance)
    reason = ONE_PAIR if len(differences) == 1 else interval.reason
    return LayerEffect(layer, mixer, len(differences), interval, word, reason)


def _matched_pairs(
    rows: Sequence[TrialRow], question: Question
) -> dict[tuple[int, str], list[float]]:
    """(layer, mixer) -> differences (mixer - reference) between runs alike in all else."""
    values: dict[tuple[int, tuple[str, ...]], float] = {}
    for row, value in _read(rows, question):
        if row.n_layers == question.n_layers and row.phase in EXPLORATION:
            values.setdefault((row.seed, row.mixers), value)
    pairs: dict[tuple[int, str], list[float]] = {}
    for (seed, mixers), value in values.items():
        for layer, mixer in enumerate(mixers):
            if mixer == question.reference:
                continue
            partner = (*mixers[:layer], question.reference, *mixers[layer + 1 :])
            if (seed, partner) in values:
                difference = value - values[seed, partner]
                pairs.setdefault((layer, mixer), []).append(difference)
    return pairs


def _read(rows: Sequence[TrialRow], question: Question) -> Iterator[tuple[TrialRow, float]]:
    """Completed exploration and confirmation runs with their selection objective."""
    for row in rows:
        if row.state == "completed" and (row.phase in EXPLORATION or row.phase == "confirm"):
            value = value_of(row.selection, question.objective)
            if value is not None:
                yield row, value
