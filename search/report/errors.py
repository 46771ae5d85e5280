"""What the intervals of the verdicts are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.report.wording import ABSENT, difference_name, in_unit, two_digits

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.verdicts import Contrast

TITLE = "Errors"
ABOUT = (
    "The p-value is adjusted for all verdicts of the study together. The degrees of freedom say "
    "how well the noise is known, the error of documents how far another choice of test documents "
    "would move the difference. Runs with a common seed may move together; the last column says "
    "how wide the interval of pairs would be, compared with the one that is used."
)


def section(answer: Answer, room: Room | None) -> Section:
    """p-values, degrees of freedom, the part of the documents, common seeds; on pages only."""
    known = [contrast for contrast in answer.contrasts if contrast.interval is not None]
    if room is not None or not known:
        return Section(TITLE)
    columns = {
        "contrast": [difference_name(contrast) for contrast in known],
        ">p-value": [_number(contrast.p_value) for contrast in known],
        ">degrees of freedom": [_df(contrast) for contrast in known],
        f">error of documents{in_unit(answer.question)}": [
            two_digits(contrast.evaluation.sd) if contrast.evaluation else ABSENT
            for contrast in known
        ],
        ">common seeds": [
            str(contrast.pairing.n) if contrast.pairing else ABSENT for contrast in known
        ],
        ">correlation": [
            f"{contrast.pairing.correlation:+.2f}" if contrast.pairing else ABSENT
            for contrast in known
        ],
        ">width in pairs": [
            f"{contrast.pairing.width_ratio:.2f}" if contrast.pairing else ABSENT
            for contrast in known
        ],
    }
    told = {name: cells for name, cells in columns.items() if set(cells) != {ABSENT}}
    if len(told) == 1:
        return Section(TITLE)
    return Section(TITLE, tuple(told), tuple(zip(*told.values(), strict=True)), about=ABOUT)


def _number(value: float | None) -> str:
    if value is None:
        return ABSENT
    return "< 0.0001" if value < 1e-4 else two_digits(value)


def _df(contrast: Contrast) -> str:
    df = contrast.interval.df if contrast.interval else None
    return ABSENT if df is None else f"{df:.1f}"
