"""Contrasts as a table: what is held against what, the difference, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.wording import ABSENT, difference_text, in_unit, two_digits

if TYPE_CHECKING:
    from search.answers.question import Question
    from search.answers.verdicts import Contrast

SMALLEST_P = 1e-4


def contrast_table(
    contrasts: Sequence[Contrast], names: Sequence[str], question: Question, *, full: bool
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and rows; in full with the adjusted p-value and the degrees of freedom.

    Args:
        contrasts: what is compared.
        names: what each is called, in the same order.
        question: the study's facts.
        full: whether there is room for all columns.
    """
    columns: dict[str, Sequence[str]] = {
        "on the test split": names,
        f">difference{in_unit(question)}": [
            difference_text(contrast.interval, question) for contrast in contrasts
        ],
    }
    if full:
        columns[">p, adjusted"] = [_p_text(contrast.p_value) for contrast in contrasts]
        columns[">df"] = [_df_text(contrast) for contrast in contrasts]
    columns["verdict"] = [contrast.verdict.text for contrast in contrasts]
    told = {
        name: cells
        for name, cells in columns.items()
        if name not in (">p, adjusted", ">df") or set(cells) != {ABSENT}
    }
    return tuple(told), tuple(zip(*told.values(), strict=True))


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return ABSENT
    return f"< {SMALLEST_P:.4f}" if p_value < SMALLEST_P else two_digits(p_value)


def _df_text(contrast: Contrast) -> str:
    df = contrast.interval.df if contrast.interval else None
    return ABSENT if df is None else f"{df:.1f}"
