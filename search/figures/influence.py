"""Figure of one mixer: how strongly each output depends on each token."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from search.figures.style import noted

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from mixers.measure import Card

SIDE = 620
FLOOR = -8.0
"""Weaker by more than this many powers of ten than the strongest: drawn as nothing."""
NOTE = (
    "Row: output; column: token. Powers of ten below the strongest derivative, "
    "as initialised. Blank: no influence."
)


def influence_figure(card: Card) -> Figure:
    """Heat map of the influence of each token on each output, as initialised."""
    from plotly.graph_objects import Figure, Heatmap

    strongest = max(max(row) for row in card.influence) or 1.0
    figure = Figure(
        Heatmap(
            z=[[level(value / strongest) for value in row] for row in card.influence],
            zmax=0.0,
            colorscale="Viridis",
            hoverongaps=False,
            hovertemplate="output %{y}, token %{x}: 10^%{z:.1f}<extra></extra>",
            colorbar={"title": {"text": "log10"}},
        )
    )
    figure.update_layout(
        template="plotly_white",
        title={
            "text": f"{card.kind}: who moves whom",
            "subtitle": {"text": f"d_model {card.d_model}, {len(card.influence)} tokens"},
            "x": 0.01,
            "y": 0.95,
        },
        width=SIDE + 100,
        height=SIDE + 100,
        margin={"l": 80, "r": 30, "t": 95, "b": 95},
        font={"family": "DejaVu Sans, Verdana, sans-serif", "size": 13},
        plot_bgcolor="#EEEEEE",
    )
    figure.update_xaxes(title_text="token", constrain="domain", showgrid=False)
    figure.update_yaxes(
        title_text="output", autorange="reversed", scaleanchor="x", showgrid=False, zeroline=False
    )
    return noted(figure, NOTE)


def level(share: float) -> float | None:
    """The power of ten of a share of the strongest; None for nothing."""
    if share <= 0.0:
        return None
    power = math.log10(share)
    return power if power >= FLOOR else None
