"""Figure of a probe: how far apart outputs are, and which are not told apart, by kind of pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from search.figures.style import FONT, HEIGHT, MIXER_COLOURS, OTHER_COLOUR, WIDTH, noted

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.probe import Examined
    from search.probe.clusters import Floats

N_BINS = 60
ROOM_FOR_LEGEND = 1.3
NOTE = (
    "Gap: distance of two outputs whose contexts differ, over that of two random outputs. "
    "Merged: no further apart than rounding moves them."
)


def probe_figure(found: Examined, *, title: str, subtitle: str) -> Figure:
    """Distribution of gaps (first precision) and share of merged outputs (all precisions)."""
    from plotly.subplots import make_subplots

    figure = make_subplots(
        1,
        2,
        column_widths=[0.62, 0.38],
        horizontal_spacing=0.12,
        subplot_titles=["gaps of the outputs told apart", "outputs merged"],
    )
    first = next(iter(found.gaps.values()))
    top = 0.0
    for place, (stratum, gaps) in enumerate(first.items()):
        x, y = histogram(gaps)
        top = max([top, *y])
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": MIXER_COLOURS[place % len(MIXER_COLOURS)], "shape": "hvh"},
            fill="tozeroy",
            opacity=0.8,
            name=words(stratum),
            hovertemplate="gap 10^%{x:.2f}: %{y:.1%}<extra>" + words(stratum) + "</extra>",
            row=1,
            col=1,
        )
    colours = (MIXER_COLOURS[0], OTHER_COLOUR)
    for place, (dtype, by_stratum) in enumerate(found.gaps.items()):
        figure.add_bar(
            x=[words(stratum) for stratum in by_stratum],
            y=[merged(gaps) for gaps in by_stratum.values()],
            name=dtype,
            marker={"color": colours[place % len(colours)]},
            hovertemplate="%{x}: %{y:.2%} merged<extra>" + dtype + "</extra>",
            legend="legend2",
            row=1,
            col=2,
        )
    figure.update_layout(
        template="plotly_white",
        title={
            "text": f"{title}: what the last block tells apart",
            "subtitle": {"text": subtitle if len(subtitle) <= 110 else subtitle[:107] + "..."},
            "x": 0.01,
            "y": 0.95,
        },
        width=WIDTH,
        height=HEIGHT,
        margin={"l": 70, "r": 30, "t": 120, "b": 115},
        font=FONT,
        legend={"orientation": "h", "x": 0.0, "y": 1.0, "xanchor": "left", "yanchor": "top"},
        legend2={"orientation": "h", "x": 1.0, "y": 1.0, "xanchor": "right", "yanchor": "top"},
    )
    figure.update_xaxes(title_text="log10 of the gap", row=1, col=1)
    figure.update_yaxes(
        title_text="share of the compared outputs",
        range=[0, ROOM_FOR_LEGEND * top or 1],
        tickformat=".0%",
        row=1,
        col=1,
    )
    figure.update_yaxes(range=[0, ROOM_FOR_LEGEND], tickformat=".0%", row=1, col=2)
    return noted(figure, NOTE)


def histogram(gaps: Floats) -> tuple[list[float], list[float]]:
    """Middles of bins of log10 gap, and the share of all outputs in each; merged ones in none."""
    seen = np.log10(gaps[gaps > 0])
    if len(seen) == 0:
        return [], []
    counts, edges = np.histogram(seen, bins=N_BINS)
    return ((edges[1:] + edges[:-1]) / 2).tolist(), (counts / len(gaps)).tolist()


def merged(gaps: Floats) -> float | None:
    """Share of the compared outputs that were not separated; None where nothing was compared."""
    return float((gaps == 0).mean()) if len(gaps) else None


def words(stratum: str) -> str:
    """A stratum's name for people."""
    return stratum.replace("_", " ")
