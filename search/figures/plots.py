"""Figures of an answer (Plotly) by name, for notebooks, the command line and pages.

Each function returns a figure and writes nothing; `search.figures.files` saves figures. Plotly
loads when a figure is made. Numbers come from rows and from `search.answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from search.figures.layers import cheap_counts, effects, heat_map
from search.figures.pareto import pareto
from search.figures.quality import leaderboard, learning_curves

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.answers.answer import Answer
    from search.rows import TrialRow

FIGURES: Mapping[str, Callable[[Sequence[TrialRow], Answer], Figure]] = {
    "leaderboard": lambda rows, answer: leaderboard(answer),
    "curves": learning_curves,
    "heat-map": heat_map,
    "effects": lambda rows, answer: effects(answer),
    "pareto": lambda rows, answer: pareto(answer),
    "counts": cheap_counts,
}
