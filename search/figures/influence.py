"""Figures of mixers: how strongly each output depends on each token.

`python -m search.figures.influence FILE` draws all built-in ones.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from search.figures.style import FONT, noted, square_of_tokens

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Strengths = Sequence[Sequence[float]]

TILE = 190
FLOOR = -8.0
"""Weaker by more than this many powers of ten than the strongest: drawn as nothing."""
NOTE = (
    "Row: output; column: token. Powers of ten below the strongest derivative, "
    "as initialised. Blank: no influence."
)


def influence_figure(kind: str, influence: Strengths, d_model: int) -> Figure:
    """Heat map of the influence of each token on each output, as initialised.

    Args:
        kind: The mixer.
        influence: How strongly output j depends on token i, (N, N).
        d_model: Features of the measurement.
    """
    from plotly.graph_objects import Figure, Heatmap

    figure = Figure(
        Heatmap(
            z=levels(influence),
            zmax=0.0,
            colorscale="Viridis",
            hoverongaps=False,
            hovertemplate="output %{y}, token %{x}: 10^%{z:.1f}<extra></extra>",
            colorbar={"title": {"text": "log10"}},
        )
    )
    subtitle = f"d_model {d_model}, {len(influence)} tokens"
    square_of_tokens(figure, f"{kind}: who moves whom", subtitle)
    return noted(figure, NOTE)


def influence_grid(influence: Mapping[str, Strengths], columns: int = 5) -> Figure:
    """Small heat maps of several mixers, with one scale.

    Args:
        influence: {name: how strongly output j depends on token i}, the same N for all.
        columns: Maps in a row.
    """
    from plotly.graph_objects import Heatmap
    from plotly.subplots import make_subplots

    rows = -(-len(influence) // columns)
    figure = make_subplots(
        rows, columns, subplot_titles=list(influence), horizontal_spacing=0.02, vertical_spacing=0.1
    )
    for place, strengths in enumerate(influence.values()):
        row, column = divmod(place, columns)
        figure.add_trace(
            Heatmap(z=levels(strengths), coloraxis="coloraxis", hoverongaps=False),
            row + 1,
            column + 1,
        )
    figure.update_layout(
        template="plotly_white",
        width=columns * TILE + 100,
        height=rows * (TILE + 30) + 40,
        margin={"l": 20, "r": 20, "t": 40, "b": 20},
        font=FONT,
        plot_bgcolor="#EEEEEE",
        coloraxis={
            "colorscale": "Viridis",
            "cmin": -3.0,
            "cmax": 0.0,
            "colorbar": {"title": {"text": "log10"}},
        },
    )
    figure.update_xaxes(showticklabels=False, showgrid=False)
    figure.update_yaxes(showticklabels=False, showgrid=False, autorange="reversed")
    return figure


def levels(influence: Strengths) -> list[list[float | None]]:
    """Powers of ten below the strongest; None for no influence."""
    strongest = max(max(row) for row in influence) or 1.0
    return [[level(value / strongest) for value in row] for row in influence]


def level(share: float) -> float | None:
    """The power of ten of a share of the strongest; None for nothing."""
    if share <= 0.0:
        return None
    power = math.log10(share)
    return power if power >= FLOOR else None


def draw_all(path: Path) -> None:
    """Draw every built-in mixer as initialised, 32 tokens of width 64."""
    from mixers.catalogue import mixer_config
    from mixers.measure import influence_strength
    from mixers.reference import built_in
    from search.figures.files import write_image

    found = {kind: influence_strength(mixer_config(kind), 64, 32) for kind in built_in()}
    write_image(influence_grid(found), path)


if __name__ == "__main__":
    draw_all(Path(sys.argv[1]))
