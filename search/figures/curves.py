"""Figures of curves alone: of one trial, or of the trials in hand; they need no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from search.figures.style import FONT, INK, MIXER_COLOURS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT = 360
Curve = Sequence[tuple[float, float]]
"""(step, value), by rising step."""


def curves_figure(curves: Mapping[str, Curve], title: str, y: str) -> Figure:
    """Lines by training step.

    Args:
        curves: Name -> points; a curve without points is left out.
        title: What they are of.
        y: Name of the values.
    """
    from plotly.graph_objects import Figure

    figure = Figure()
    colours = (*MIXER_COLOURS, INK)
    drawn = {name: points for name, points in curves.items() if points}
    for index, (name, points) in enumerate(drawn.items()):
        figure.add_scatter(
            x=[step for step, _ in points],
            y=[value for _, value in points],
            name=name,
            mode="lines+markers" if len(points) <= 40 else "lines",
            line={"color": colours[index % len(colours)], "width": 2},
            hovertemplate=f"{_plain(name)}<br>step %{{x}}: %{{y:.4f}}<extra></extra>",
        )
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "x": 0.01},
        width=900,
        height=HEIGHT,
        margin={"l": 80, "r": 30, "t": 60, "b": 60},
        font=FONT,
        showlegend=True,
    )
    figure.update_xaxes(title_text="training step", automargin=True, zeroline=False)
    figure.update_yaxes(title_text=y, automargin=True)
    return figure


def _plain(name: str) -> str:
    """A name without what Plotly reads as a placeholder."""
    return name.replace("%", "%%").replace("{", "(").replace("}", ")")
