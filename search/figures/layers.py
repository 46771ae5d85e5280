"""Figures of layers: their mixers, their number, their effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from mixers.notation import kind_of
from search.answers.arms import explored_rows, value_of
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
from search.wording import in_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.answers.answer import Answer
    from search.answers.intervals import Interval
    from search.rows import TrialRow

MAX_POINTS = 60
Point = tuple[int, float, "TrialRow"]
"""Layers without attention, the objective, the trial."""


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
    every = [
        (sum(kind_of(mixer) != kind for mixer in row.mixers), value, row)
        for row in explored_rows(rows, question)
        if row.state == "completed"
        and row.n_layers == question.n_layers
        and (value := value_of(row.selection, question.objective)) is not None
    ]
    points = _thinned(every, answer)
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
    hidden = len(every) - len(points)
    left_out = f"{hidden} of {len(every)} trials, spread evenly, are not drawn" if hidden else ""
    return noted(figure, f"exploratory: {chosen_by(answer)}", left_out)


def _thinned(points: Sequence[Point], answer: Answer) -> list[Point]:
    """At most `MAX_POINTS` in a column, evenly among its values, beside all that has a role."""
    columns: dict[int, list[Point]] = {}
    kept = []
    for point in sorted(points, key=lambda point: point[1]):
        row = point[2]
        if role_of_trial(row.arch_id, bool(row.role), answer) == "other":
            columns.setdefault(point[0], []).append(point)
        else:
            kept.append(point)
    for column in columns.values():
        step = max(1.0, len(column) / MAX_POINTS)
        kept += [column[int(index * step)] for index in range(min(MAX_POINTS, len(column)))]
    return sorted(kept, key=lambda point: point[2].number)


def chosen_by(answer: Answer) -> str:
    """Who chose the runs of a figure."""
    if answer.question.is_listed:
        return "over all stacks of the list"
    return "a sampler chose these runs"


def effects(answer: Answer) -> Figure:
    """Difference that a mixer makes in a layer, with its interval; without data if unmeasured.

    A design's layers are drawn averaged over it and in the chosen stack, else matched pairs.
    """
    question = answer.question
    title = f"difference to attention in {question.objective}{in_unit(question)}"
    figure = blank(question, "What each layer's mixer changes", title, "")
    bars = [bar for bar in _bars(answer) if bar.interval.low is not None]
    for index, name in enumerate(dict.fromkeys(bar.name for bar in bars)):
        _add_bars(
            figure,
            [bar for bar in bars if bar.name == name],
            MIXER_COLOURS[index % len(MIXER_COLOURS)],
        )
    if bars:
        figure.add_vline(x=0, line={"color": INK, "width": 1})
        order = list(dict.fromkeys(bar.label for bar in bars))[::-1]
        figure.update_yaxes(type="category", categoryorder="array", categoryarray=order)
        figure.update_layout(height=max(300, 170 + 26 * len(order)))
        return noted(figure, "bars: intervals that hold for all of them together")
    figure.update_yaxes(visible=False)
    figure.update_xaxes(showticklabels=False)
    return noted(figure, "not measured: too few stacks differ in one layer only")


@dataclass(frozen=True)
class _Bar:
    """One effect: its line, its colour's name, what was measured and what may be said."""

    label: str
    name: str
    interval: Interval
    word: str


def _bars(answer: Answer) -> list[_Bar]:
    """The effects, layer by layer."""
    if answer.design is None:
        return [
            _Bar(
                f"layer {effect.layer}: {effect.mixer}", effect.mixer, effect.interval, effect.word
            )
            for effect in answer.layers
            if effect.interval is not None
        ]
    design = answer.design
    found = []
    for layer in design.layers:
        readings = (
            (f"{design.cheap}, average", layer.average, layer.average_word),
            (f"{layer.mixer} in {design.stack}", layer.in_stack, layer.stack_word),
        )
        found += [
            _Bar(f"layer {layer.layer}: {name}", name, interval, word)
            for name, interval, word in readings
            if interval is not None
        ]
    return found


def _add_bars(figure: Figure, bars: Sequence[_Bar], colour: str) -> None:
    figure.add_scatter(
        x=[bar.interval.estimate for bar in bars],
        y=[bar.label for bar in bars],
        mode="markers",
        name=bars[0].name,
        marker={"color": colour, "size": 10},
        error_x={
            "array": [(bar.interval.high or 0.0) - bar.interval.estimate for bar in bars],
            "arrayminus": [bar.interval.estimate - (bar.interval.low or 0.0) for bar in bars],
            "thickness": 2,
        },
        customdata=[[bar.word] for bar in bars],
        hovertemplate="%{y}<br>%{x:+.4f}<br>%{customdata[0]}<extra></extra>",
    )


def heat_map(rows: Sequence[TrialRow], answer: Answer) -> Figure:
    """Mean selection objective by layer and kind of mixer, with the runs of each cell."""
    question = answer.question
    cells: dict[tuple[str, int], list[float]] = {}
    for row in explored_rows(rows, question):
        value = value_of(row.selection, question.objective)
        is_read = row.state == "completed" and row.n_layers == question.n_layers
        if value is None or not is_read:
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
    return noted(figure, f"raw means, {chosen_by(answer)}: a picture, no effect")


def _mean(values: Sequence[float] | None) -> float | None:
    return fmean(values) if values else None


def _cell_text(values: Sequence[float] | None) -> str:
    if not values:
        return ""
    spread = f"<br>\u00b1 {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{spread}<br>n {len(values)}"
