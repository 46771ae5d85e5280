"""The parts of the answer in reading order; a new part is one more line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from search.report import (
    costs,
    counts,
    layers,
    leaderboard,
    noise,
    probe,
    reach,
    training,
    verdicts,
)
from search.report.sections import Room, Section

if TYPE_CHECKING:
    from search.answers.answer import Answer

PARTS: tuple[Callable[[Answer, Room | None], Section], ...] = (
    leaderboard.section,
    verdicts.section,
    noise.section,
    counts.section,
    layers.section,
    training.section,
    costs.section,
    probe.section,
    reach.section,
)
