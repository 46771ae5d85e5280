"""The exploratory parts of the answer in words: counts, layers, training, probe."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from search.answers.predictors import MIN_ARCHITECTURES, PROBE
from search.answers.verdicts import UNDECIDED
from search.sections import Section
from search.wording import ABSENT, difference_text, ends_text, in_unit, plural, signed, value_text

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.effects import LayerEffect
    from search.answers.predictors import Predictor
    from search.answers.question import Question
    from search.answers.ranks import Lead

MAX_POINTS = 4
MAX_RANGES = 6


@dataclass(frozen=True)
class Room:
    """How much of the long parts fits: rows of the leaderboard, layers, mixers in a layer."""

    leaders: int
    layers: int
    mixers: int


def counts(answer: Answer, room: Room | None) -> Section:
    """How many layers may be cheap, then whether their place matters."""
    question = answer.question
    what = f"selection {question.objective} by number of layers without attention"
    lines = [_position(answer)]
    if room is not None:
        cells = [
            f"{row.n_cheap}: {value_text(row.mean, question)}"
            + (
                f" ({value_text(row.low, question)}..{value_text(row.high, question)}, n {row.n})"
                if row.n > 1 and len(answer.counts) <= MAX_RANGES
                else ""
            )
            for row in answer.counts
        ]
        return Section("Cheap layers", lines=(f"{what}: " + "; ".join(cells), *lines))
    header = (">layers without attention", ">architectures", ">mean", ">lowest", ">highest")
    rows = tuple(
        (
            str(row.n_cheap),
            str(row.n),
            *(value_text(value, question) for value in (row.mean, row.low, row.high)),
        )
        for row in answer.counts
    )
    return Section("Cheap layers", header, rows, (f"{what}; exploratory", *lines))


def _position(answer: Answer) -> str:
    position = answer.position
    if position is None:
        return "their place, given the number: undecided (no pair was trained)"
    reason = f" ({position.reason})" if position.reason else ""
    return (
        f"their place, given the number: {position.first} - {position.last} "
        f"{difference_text(position.interval, answer.question)}: {position.word}{reason}"
    )


def layers(answer: Answer, room: Room | None) -> Section:
    """What each mixer does in each layer, from matched pairs."""
    question = answer.question
    heading = "mixer - attention, all else equal; exploratory: a sampler chose these runs"
    measured = [effect for effect in answer.layers if effect.interval is not None]
    if room is None and measured:
        header = (">layer", "mixer", ">pairs", f">difference{in_unit(question)}", "verdict")
        rows = tuple(
            (
                str(effect.layer),
                effect.mixer,
                str(effect.n),
                difference_text(effect.interval, question),
                effect.word,
            )
            for effect in measured
        )
        return Section("By layer", header, rows, (heading,))
    known: dict[int, list[LayerEffect]] = {}
    silent = []
    for layer, cells in groupby(answer.layers, key=lambda effect: effect.layer):
        told = sorted((cell for cell in cells if cell.interval is not None), key=_by_weight)
        if told:
            known[layer] = told
        else:
            silent.append(str(layer))
    n_layers = room.layers if room is not None else len(known)
    n_mixers = room.mixers if room is not None else 1
    foremost = sorted(known, key=lambda layer: _by_weight(known[layer][0]))[:n_layers]
    lines = [
        f"layer {layer}: {_cells(known[layer], n_mixers, question)}" for layer in sorted(foremost)
    ]
    if len(known) > len(lines):
        lines.append(f"{plural(len(known) - len(lines), 'more layer')} in the full report")
    if silent:
        lines.append(f"layer {', '.join(silent)}: undecided (no pairs)")
    return Section("By layer", lines=(heading, *lines))


def _by_weight(effect: LayerEffect) -> tuple[bool, int]:
    """Decided effects first, then those with most pairs."""
    return effect.word == UNDECIDED, -effect.n


def _cells(effects: list[LayerEffect], n_mixers: int, question: Question) -> str:
    texts = [
        f"{effect.mixer} {difference_text(effect.interval, question)} "
        f"({plural(effect.n, 'pair')}) {effect.word}"
        for effect in effects[:n_mixers]
    ]
    hidden = len(effects) - n_mixers
    return "; ".join(texts) + (f"; {hidden} more" if hidden > 0 else "")


def training(answer: Answer) -> Section:
    """Whether lead and ranks were still moving at the end of training."""
    lines = [] if answer.lead is None else [_lead(answer.lead, answer.question)]
    ranks = answer.ranks
    found = [agreement for agreement in (ranks.half, ranks.previous) if agreement is not None]
    if found:
        parts = [
            f"{one.tau:.2f} since step {one.step} ({one.swapped} of {one.pairs} pairs)"
            for one in found
        ]
        lines.append(f"order of {ranks.n} architectures: Kendall's tau " + ", ".join(parts))
    else:
        lines.append(f"ranks: too few curves to say whether they still moved ({ranks.n})")
    return Section("Training", lines=tuple(lines))


def _lead(lead: Lead, question: Question) -> str:
    stride = -(-len(lead.points) // MAX_POINTS)
    points = lead.points[::-1][::stride][::-1]
    values = " ".join(signed(value, question) for _, value in points)
    reason = f" ({lead.change.reason})" if lead.change.reason else ""
    return (
        f"lead over all-attention from step {points[0][0]} to {points[-1][0]}: {values} "
        f"({plural(lead.n, 'seed')}); since {lead.middle_step}: {lead.word}{reason}"
    )


def probe(answer: Answer, room: Room | None) -> Section:
    """Whether the probe foretells the objective better than trivial predictors."""
    found = answer.predictors
    if not found.found:
        line = f"too few architectures to correlate it ({found.n} of {MIN_ARCHITECTURES})"
        return Section("Probe", lines=(line,))
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
    return Section("Probe", lines=tuple(lines))


def _predictor(predictor: Predictor, *, with_ends: bool) -> str:
    correlation = predictor.correlation
    if correlation is None:
        return f"{predictor.name} {ABSENT}"
    ends = f" {ends_text(correlation, 2)}" if with_ends else ""
    return f"{predictor.name} {correlation.estimate:+.2f}{ends}"
