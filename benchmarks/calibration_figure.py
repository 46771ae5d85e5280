"""The calibration as a picture: false verdicts, cover and power over the budget, by strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plotly.graph_objects import Figure
from plotly.subplots import make_subplots

from search.figures.files import write_html, write_image

Row = Mapping[str, Any]

PANELS = (
    ("studies with a false verdict, %", "false_studies", "replays", (0, 12)),
    ("95 % intervals that cover, %", "covered", "intervals", (85, 100)),
    ("cheap - attention right, %", "first_right", "first", (0, 102)),
)
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
    "#999999",
    "#882255",
    "#117733",
)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
FEWEST_INTERVALS = 100


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Writes calibration.html and calibration.png into a folder."""
    drawn = figure(rows)
    write_html([drawn], folder / "calibration.html", title="Calibration of the verdicts")
    write_image(drawn, folder / "calibration.png", scale=1.5)


def figure(rows: Sequence[Row]) -> Figure:
    """One column a strategy, one line a world; dotted lines are what is promised."""
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    drawn = make_subplots(
        rows=len(PANELS),
        cols=len(strategies),
        shared_xaxes=True,
        shared_yaxes=True,
        vertical_spacing=0.05,
        horizontal_spacing=0.03,
        column_titles=strategies,
    )
    for column, strategy in enumerate(strategies, start=1):
        for number, (_, part, whole, _) in enumerate(PANELS, start=1):
            for index, world in enumerate(worlds):
                drawn.add_scatter(
                    **_line(rows, strategy, world, part, whole),
                    mode="lines+markers",
                    name=world,
                    legendgroup=world,
                    showlegend=(column, number) == (1, 1),
                    line={"color": COLOURS[index % len(COLOURS)], "width": 1.5},
                    marker={"symbol": SYMBOLS[index % len(SYMBOLS)], "size": 8},
                    row=number,
                    col=column,
                )
        drawn.add_hline(y=5, line={"dash": "dot", "color": "#444"}, row=1, col=column)
        drawn.add_hrect(
            y0=93, y1=97, line_width=0, fillcolor="#009e73", opacity=0.12, row=2, col=column
        )
        drawn.add_hline(y=90, line={"dash": "dot", "color": "#444"}, row=3, col=column)
        drawn.update_xaxes(title_text="trials", row=len(PANELS), col=column)
    for number, (title, _, _, limits) in enumerate(PANELS, start=1):
        drawn.update_yaxes(range=limits, row=number)
        drawn.update_yaxes(title_text=title, row=number, col=1)
    budgets = sorted({row["budget"] for row in rows})
    drawn.update_xaxes(type="log", matches="x", tickvals=budgets)
    drawn.update_layout(
        template="plotly_white",
        width=340 * len(strategies) + 200,
        height=1050,
        title=f"Verdicts against the truth, {rows[0]['replays']} studies a point" if rows else "",
    )
    return drawn


def _line(
    rows: Sequence[Row], strategy: str, world: str, part: str, whole: str
) -> dict[str, list[float]]:
    fewest = FEWEST_INTERVALS if whole == "intervals" else 1
    ours = [
        row
        for row in rows
        if (row["strategy"], row["world"]) == (strategy, world) and row[whole] >= fewest
    ]
    ours.sort(key=lambda row: row["budget"])
    return {
        "x": [row["budget"] for row in ours],
        "y": [100.0 * row[part] / row[whole] for row in ours],
    }
