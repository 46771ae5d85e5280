"""What the pick costs against all-attention and the shorter model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import OTHERS, candidate_words

if TYPE_CHECKING:
    from search.answers.answer import Answer


def section(answer: Answer, room: Room | None) -> Section:
    """Ratios of sizes and of measured times."""
    candidate = candidate_words(answer)
    lines = []
    for saving in answer.savings:
        counted = (("params", saving.params), ("FLOPs", saving.flops))
        measured = (("step", saving.step), ("inference", saving.latency))
        parts = [
            label + ", ".join(f"{what} {1 / ratio:.2f}" for what, ratio in group if ratio)
            for label, group in (("", counted), ("measured ", measured))
            if any(ratio for _, ratio in group)
        ]
        if parts:
            lines.append(f"ratio {candidate} / {OTHERS[saving.against]}: " + "; ".join(parts))
    return Section("Costs", lines=tuple(lines))
