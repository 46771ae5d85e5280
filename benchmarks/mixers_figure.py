"""The results of `benchmarks.mixers` as a picture: every ratio by shape, and where it should be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plotly.graph_objects import Figure
from plotly.subplots import make_subplots

from search.figures.files import write_image

Row = dict[str, Any]
COLOURS = ("#0072b2", "#d55e00", "#009e73")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Writes the picture."""
    write_image(figure(rows), path, scale=1.5)


def figure(rows: Sequence[Row]) -> Figure:
    """One panel a pass at the first width and dtype, one marker a shape; crosses are the bars."""
    ratios = [row for row in rows if row["row"] == "ratio"]
    first = {name: ratios[0][name] for name in ("dtype", "d_model")}
    ours = [row for row in ratios if first.items() <= row.items()]
    kinds = list(dict.fromkeys(row["kind"] for row in ours))
    drawn = make_subplots(1, len(kinds), shared_yaxes=True, column_titles=kinds)
    for column, kind in enumerate(kinds, start=1):
        here = [row for row in ours if row["kind"] == kind]
        places = list(dict.fromkeys((row["batch"], row["seq_len"]) for row in here))
        for colour, place in zip(COLOURS, places, strict=False):
            points = [row for row in here if (row["batch"], row["seq_len"]) == place]
            add_points(drawn, points, colour, column)
        drawn.add_vline(x=1, line={"dash": "dot", "color": "#444"}, row=1, col=column)
    drawn.update_xaxes(type="log", title_text="peer's time : ours (right of 1 is faster)")
    drawn.update_yaxes(autorange="reversed")
    drawn.update_layout(
        template="plotly_white",
        width=1300,
        height=620,
        margin={"l": 430},
        title=f"{first['dtype']}, width {first['d_model']}: medians, ranges; x is what is wanted",
    )
    return drawn


def add_points(drawn: Figure, points: Sequence[Row], colour: str, column: int) -> None:
    """Adds the ratios of one shape and their bars."""
    name = f"{points[0]['batch']} x {points[0]['seq_len']}"
    labels = [row["name"].replace("`", "") for row in points]
    drawn.add_scatter(
        x=[row["median"] for row in points],
        y=labels,
        error_x={
            "symmetric": False,
            "array": [row["most"] - row["median"] for row in points],
            "arrayminus": [row["median"] - row["least"] for row in points],
        },
        mode="markers",
        marker={"color": colour, "size": 9},
        name=name,
        legendgroup=name,
        showlegend=column == 1,
        row=1,
        col=column,
    )
    wanted = [(row["bar"], label) for row, label in zip(points, labels, strict=True) if row["bar"]]
    drawn.add_scatter(
        x=[bar for bar, _ in wanted],
        y=[label for _, label in wanted],
        mode="markers",
        marker={
            "color": colour,
            "symbol": "x-thin",
            "size": 11,
            "line": {"width": 2, "color": colour},
        },
        legendgroup=name,
        showlegend=False,
        row=1,
        col=column,
    )
