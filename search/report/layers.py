"""What each mixer does in each layer: by a design where there is one, else by matched pairs."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from search.answers.verdicts import UNDECIDED
from search.report import design
from search.report.sections import Room, Section
from search.wording import difference_text, in_unit, plural

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.effects import LayerEffect
    from search.answers.question import Question

ABOUT = (
    "Pairs of stacks that differ in one layer only: one has attention there, the other this mixer."
)
HEADING = "mixer - attention, all else equal; exploratory: a sampler chose these runs"
OTHERS = "Other mixers"


def section(answer: Answer, room: Room | None) -> Section:
    """What each mixer does in each layer."""
    if answer.design is not None:
        return design.layer_section(answer, answer.design, room)
    question = answer.question
    measured = [effect for effect in answer.layers if effect.interval is not None]
    if question.is_listed and not measured:
        return Section("By layer")
    if room is None and measured:
        return _pairs("By layer", measured, question)
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
    return Section("By layer", lines=(HEADING, *lines), about=ABOUT)


def others(answer: Answer, room: Room | None) -> Section:
    """What mixers beside the design's do in each layer, from matched pairs; on pages only."""
    cheap = answer.design.cheap if answer.design is not None else None
    measured = [
        effect for effect in answer.layers if effect.interval is not None and effect.mixer != cheap
    ]
    if room is not None or cheap is None or not measured:
        return Section(OTHERS)
    return _pairs(OTHERS, measured, answer.question)


def _pairs(title: str, measured: list[LayerEffect], question: Question) -> Section:
    """Matched pairs as a table."""
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
    return Section(title, header, rows, (HEADING,), about=ABOUT)


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
