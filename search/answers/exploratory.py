"""The effects of single layers as rows of the table of verdicts, marked as exploratory."""

from __future__ import annotations

from collections.abc import Sequence

from search.answers.effects import LayerEffect
from search.answers.family import adjusted
from search.answers.question import Question
from search.rows import VerdictRow


def layer_rows(effects: Sequence[LayerEffect], question: Question) -> tuple[VerdictRow, ...]:
    """One row for each layer and mixer that was measured.

    The p-value is of the difference being the tolerance, between `may be cheap` and `keep
    attention`, adjusted for all layers and mixers and for the look.
    """
    rows = []
    for effect in effects:
        interval = effect.interval
        if interval is None:
            continue
        p_value = interval.p_value(question.sign * question.tolerance)
        rows.append(
            VerdictRow(
                contrast=f"layer {effect.layer}: {effect.mixer} - {question.reference}",
                estimate=interval.estimate,
                low=interval.low,
                high=interval.high,
                unit=question.unit,
                n=2 * effect.n,
                verdict=effect.word,
                kind="exploratory",
                p_value=None if p_value is None else adjusted(p_value, interval.level),
            )
        )
    return tuple(rows)
