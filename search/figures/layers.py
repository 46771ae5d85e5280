"""Figures of layers: their mixers, their number, their effects."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from search.answers.arms import EXPLORATION, value_of
from search.answers.question import kind_of
from search.figures.style import (
    INK,
    MIXER_COLOURS,
    ROLE_COLOURS,
    ROLE_NAMES,
    axis,
    blank,
    noted,
    role_of_trial,
    selection_axis,
)
from search.report.wording import in_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.answers.answer import Answer
    from search.rows import TrialRow


def cheap_counts(rows: Sequence[TrialRow], answer: Answer) -> Figure:
    """Selection objective by the number of layers without attention, and the mean of each."""
    question = answer.question
    figure = blank(
        question,
        "How many layers may be cheap?",
        "layers without attention",
        selection_axis(answer),
    )
    kind = kind_of(question.reference)
    points = [
        (sum(kind_of(mixer) != kind for mixer in row.mixers), value, row)
        for row in rows
        if row.state == "completed"
        and row.phase in EXPLORATION
        and row.n_layers == question.n_layers
        and (value := value_of(row.selection, question.objective)) is not None
    ]
    figure.add_scatter(
        x=[n for n, _, _ in points],
        y=[value for _, value, _ in points],
        mode="markers",
        marker={
            "color": [
                ROLE_COLOURS[role_of_trial(r.arch_id, bool(r.role), answer)] for *_, r in points
            ],
            "size": 10,
            "opacity": 0.85,
        },
        name="an architecture",
        showlegend=False,
        customdata=[[row.code] for *_, row in points],
        hovertemplate="%{customdata[0]}: %{y:.4f}<extra></extra>",
    )
    figure.add_scatter(
        x=[row.n_cheap for row in answer.counts],
        y=[row.mean for row in answer.counts],
        mode="lines+markers",
        marker={"symbol": "line-ew-open", "size": 26, "color": INK},
        line={"color": INK, "width": 1, "dash": "dot"},
        name="mean",
        hovertemplate="mean %{y:.4f}<extra></extra>",
    )
    figure.update_xaxes(tickvals=list(range(question.n_layers + 1)))
    roles = {role_of_trial(row.arch_id, bool(row.role), answer) for *_, row in points}
    for role in [role for role in ROLE_NAMES if role in roles]:
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            marker={"color": ROLE_COLOURS[role], "size": 10},
            name=ROLE_NAMES[role],
        )
    return noted(figure, "exploratory: a sampler chose these runs")


def effects(answer: Answer) -> Figure:
    """Difference that a mixer makes in a layer, with its interval; without data if unmeasured."""
    question = answer.question
    title = f"difference to attention in {question.objective}{in_unit(question)}"
    figure = blank(question, "What each layer's mixer changes", title, "")
    measured = [
        (effect, effect.interval)
        for effect in answer.layers
        if effect.interval is not None and effect.interval.low is not None
    ]
    for index, mixer in enumerate(dict.fromkeys(effect.mixer for effect, _ in measured)):
        cells = [pair for pair in measured if pair[0].mixer == mixer]
        figure.add_scatter(
            x=[interval.estimate for _, interval in cells],
            y=[f"layer {effect.layer}: {mixer}" for effect, _ in cells],
            mode="markers",
            name=mixer,
            marker={"color": MIXER_COLOURS[index % len(MIXER_COLOURS)], "size": 10},
            error_x={
                "array": [(i.high or 0.0) - i.estimate for _, i in cells],
                "arrayminus": [i.estimate - (i.low or 0.0) for _, i in cells],
                "thickness": 2,
            },
            customdata=[[effect.n, effect.word] for effect, _ in cells],
            hovertemplate="%{y}<br>%{x:+.4f}, pairs %{customdata[0]}<br>%{customdata[1]}"
            "<extra></extra>",
        )
    if measured:
        figure.add_vline(x=0, line={"color": INK, "width": 1})
        order = sorted({(effect.layer, effect.mixer) for effect, _ in measured}, reverse=True)
        figure.update_yaxes(
            type="category",
            categoryorder="array",
            categoryarray=[f"layer {layer}: {mixer}" for layer, mixer in order],
        )
        figure.update_layout(height=max(300, 170 + 26 * len(order)))
        return noted(figure, "bars: intervals that hold for all cells together")
    figure.update_yaxes(visible=False)
    figure.update_xaxes(showticklabels=False)
    return noted(figure, "not measured: too few stacks differ in one layer only")


def heat_map(rows: Sequence[TrialRow], answer: Answer) -> Figure:
    """Mean selection objective by layer and kind of mixer, with the runs of each cell."""
    question = answer.question
    cells: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        value = value_of(row.selection, question.objective)
        if (
            value is None
            or row.state != "completed"
            or row.phase not in EXPLORATION
            or row.n_layers != question.n_layers
        ):
            continue
        for layer, mixer in enumerate(row.mixers):
            cells.setdefault((kind_of(mixer), layer), []).append(value)
    kinds = sorted(
        {kind for kind, _ in cells}, key=lambda kind: (kind != kind_of(question.reference), kind)
    )
    layers = range(question.n_layers)
    figure = blank(question, "Mean by layer and mixer", "layer (0 at the input)", "")
    means = [[_mean(cells.get((kind, layer))) for layer in layers] for kind in kinds]
    figure.add_heatmap(
        x=[str(layer) for layer in layers],
        y=kinds,
        z=means,
        text=[[_cell_text(cells.get((kind, layer))) for layer in layers] for kind in kinds],
        texttemplate="%{text}",
        colorscale="Viridis",
        reversescale=question.direction == "maximize",
        colorbar={"title": {"text": axis(question)}},
        xgap=2,
        ygap=2,
        hovertemplate="%{y}, layer %{x}<br>%{text}<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return noted(figure, "raw means of the runs that a sampler chose: a picture, no effect")


def _mean(values: Sequence[float] | None) -> float | None:
    return fmean(values) if values else None


def _cell_text(values: Sequence[float] | None) -> str:
    if not values:
        return ""
    spread = f"<br>\u00b1 {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{spread}<br>n {len(values)}"
