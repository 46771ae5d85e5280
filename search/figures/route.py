"""Figure of a stack's route: after how many layers each token sees each other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.figures.style import noted, square_of_tokens

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from mixers.receptive import Route

NOTE = (
    "Row: the token that receives; column: the token that it sees. Blank: never, "
    "however often the stack is repeated."
)


def route_figure(route: Route) -> Figure:
    """Heat map of the number of layers after which output j has seen token i."""
    from plotly.graph_objects import Figure, Heatmap

    most = int(route.until.max())
    figure = Figure(
        Heatmap(
            z=[list(row) for row in route.layers_until],
            zmin=0,
            zmax=max(most, 1),
            colorscale="Viridis",
            reversescale=True,
            hoverongaps=False,
            hovertemplate="output %{y} sees token %{x} after %{z} layers<extra></extra>",
            colorbar={"title": {"text": "layers"}, "dtick": max(1, most // 8)},
        )
    )
    within = route.seen_after(route.n_layers) / route.n_pairs
    square_of_tokens(
        figure,
        f"{route.code}: layers until a token sees another",
        f"{shortened(route.notation)}; {route.n_tokens} tokens; "
        f"{within:.0%} of all pairs meet in {route.n_layers} layers",
    )
    return noted(figure, NOTE)


def shortened(text: str) -> str:
    """A notation cut to the width of the figure."""
    return text if len(text) <= 60 else text[:57] + "..."
