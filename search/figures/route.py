"""Figure of a stack's route: after how many layers each token sees each other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.figures.style import noted

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from mixers.receptive import Route

SIDE = 620
NOTE = (
    "Row: the token that receives; column: the token that it sees. Blank: never, "
    "however often the stack is repeated."
)


def route_figure(route: Route) -> Figure:
    """Heat map of the number of layers after which output j has seen token i."""
    from plotly.graph_objects import Figure, Heatmap

    most = max(until for row in route.layers_until for until in row if until is not None)
    figure = Figure(
        Heatmap(
            z=[list(row) for row in route.layers_until],
            zmin=0,
            zmax=max(most, 1),
            colorscale="Viridis",
            reversescale=True,
            hoverongaps=False,
            hovertemplate="output %{y} sees token %{x} after %{z} layers<extra></extra>",
            colorbar={"title": {"text": "layers"}, "tickformat": "d"},
        )
    )
    within = route.seen_after(route.n_layers) / route.n_pairs
    figure.update_layout(
        template="plotly_white",
        title={
            "text": f"{route.code}: layers until a token sees another",
            "subtitle": {
                "text": f"{shortened(route.notation)}; {route.n_tokens} tokens; "
                f"{within:.0%} of all pairs meet in {route.n_layers} layers"
            },
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


def shortened(text: str) -> str:
    """A notation cut to the width of the figure."""
    return text if len(text) <= 60 else text[:57] + "..."
