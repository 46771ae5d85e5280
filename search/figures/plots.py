"""Figures of an answer (Plotly) for notebooks, the command line and pages.

Each function returns a figure and writes nothing; `search.figures.files` saves figures. Plotly
loads when a figure is made. Numbers come from rows and from `search.answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from search.answers.arms import EXPLORATION, value_of
from search.answers.question import kind_of
from search.report.wording import in_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.answers.answer import Answer, Leader
    from search.answers.question import Question
    from search.rows import TrialRow

# Okabe and Ito's palette: told apart by colour-blind readers too.
REFERENCE_COLOUR = "#D55E00"
PICK_COLOUR = "#009E73"
SHORTER_COLOUR = "#CC79A7"
RIVAL_COLOUR = "#0072B2"
BASELINE_COLOUR = "#56B4E9"
OTHER_COLOUR = "#B8BEC6"
ROLE_COLOURS = {
    "pick": PICK_COLOUR,
    "reference": REFERENCE_COLOUR,
    "shorter": SHORTER_COLOUR,
    "rival": RIVAL_COLOUR,
    "baseline": BASELINE_COLOUR,
    "other": OTHER_COLOUR,
}
ROLE_NAMES = {
    "pick": "pick",
    "reference": "all-attention",
    "shorter": "best shorter model",
    "rival": "rival",
    "baseline": "other baselines",
    "other": "other architectures",
}
WIDTH, HEIGHT = 900, 520
MAX_BARS = 20


def learning_curves(rows: Sequence[TrialRow], answer: Answer) -> Figure:
    """Objective on the selection split by training step, finalists in colour."""
    figure = _figure(answer.question, "Learning curves", "training step", _selection(answer))
    curves = [row for row in rows if row.phase in EXPLORATION and len(row.curve) > 1]
    named: set[str] = set()
    for row in sorted(curves, key=lambda row: row.arch_id in _finalist_ids(answer)):
        role = _role(row.arch_id, row.phase == "baseline", answer)
        is_grey = role in ("other", "baseline")
        figure.add_scatter(
            x=[step for step, _ in row.curve],
            y=[value for _, value in row.curve],
            mode="lines" if is_grey else "lines+markers",
            line={"color": ROLE_COLOURS[role], "width": 1.2 if is_grey else 3},
            opacity=0.7 if is_grey else 1.0,
            name=ROLE_NAMES[role] if is_grey else f"{ROLE_NAMES[role]} {row.code}",
            legendgroup=role,
            showlegend=role not in named,
            hovertemplate=f"{row.code}<br>step %{{x}}: %{{y:.4f}}<extra></extra>",
        )
        named.add(role)
    return figure


def leaderboard(answer: Answer) -> Figure:
    """Best architectures, finalists and baselines: selection, and test with repeat SD."""
    question = answer.question
    figure = _figure(question, "Leaderboard", _axis(question), "")
    shown = _bars(answer)[::-1]
    for role, name in ROLE_NAMES.items():
        members = [row for row in shown if _role_of(row, answer) == role]
        colour = ROLE_COLOURS[role]
        if members:
            figure.add_scatter(
                x=[row.selection for row in members],
                y=[_label(row) for row in members],
                mode="markers",
                name=name,
                legendgroup=role,
                marker={"color": colour, "size": 11, "symbol": "circle-open", "line": {"width": 2}},
                customdata=[[row.notation] for row in members],
                hovertemplate="%{customdata[0]}<br>selection %{x:.4f}<extra></extra>",
            )
        confirmed = [row for row in members if row.test is not None]
        if confirmed:
            figure.add_scatter(
                x=[row.test for row in confirmed],
                y=[_label(row) for row in confirmed],
                mode="markers",
                legendgroup=role,
                showlegend=False,
                marker={"color": colour, "size": 11},
                error_x={"array": [row.test_sd for row in confirmed], "thickness": 2},
                customdata=[[row.notation, row.n_test] for row in confirmed],
                hovertemplate=(
                    "%{customdata[0]}<br>test %{x:.4f}, runs %{customdata[1]}<extra></extra>"
                ),
            )
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=[_label(row) for row in shown]
    )
    figure.update_layout(height=max(360, 170 + 26 * len(shown)))
    return _noted(figure, "open: selection split, one seed; filled: mean on test, bar = repeat SD")


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
    figure = _figure(question, "Mean by layer and mixer", "layer (0 at the input)", "")
    means = [[_mean(cells.get((kind, layer))) for layer in layers] for kind in kinds]
    figure.add_heatmap(
        x=[str(layer) for layer in layers],
        y=kinds,
        z=means,
        text=[[_cell_text(cells.get((kind, layer))) for layer in layers] for kind in kinds],
        texttemplate="%{text}",
        colorscale="Viridis",
        reversescale=question.direction == "maximize",
        colorbar={"title": {"text": _axis(question)}},
        xgap=2,
        ygap=2,
        hovertemplate="%{y}, layer %{x}<br>%{text}<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return _noted(figure, "raw means of the runs that a sampler chose: a picture, no effect")


def pareto(answer: Answer) -> Figure:
    """Objective against parameters; the line joins what nothing smaller beats."""
    question = answer.question
    figure = _figure(question, "Size and quality", "parameters", _selection(answer))
    rows = [row for row in answer.leaders if row.params is not None]
    front = _front(rows, question)
    figure.add_scatter(
        x=[row.params for row in front],
        y=[row.selection for row in front],
        mode="lines",
        line={"color": "#444444", "dash": "dot", "shape": "hv", "width": 1.5},
        name="best at its size or below",
        hoverinfo="skip",
    )
    for role, name in list(ROLE_NAMES.items())[::-1]:
        members = [row for row in rows if _role_of(row, answer) == role]
        if not members:
            continue
        is_named = role not in ("other", "baseline")
        figure.add_scatter(
            x=[row.params for row in members],
            y=[row.selection for row in members],
            mode="markers+text" if is_named else "markers",
            text=[row.code for row in members],
            textposition="bottom center",
            cliponaxis=False,
            marker={"color": ROLE_COLOURS[role], "size": 13 if is_named else 9},
            name=name,
            customdata=[[row.code] for row in members],
            hovertemplate="%{customdata[0]}<br>%{x:.4s} parameters<br>%{y:.4f}<extra></extra>",
        )
    return figure


def cheap_counts(rows: Sequence[TrialRow], answer: Answer) -> Figure:
    """Selection objective by the number of layers without attention, and the mean of each."""
    question = answer.question
    figure = _figure(
        question, "How many layers may be cheap?", "layers without attention", _selection(answer)
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
            "color": [ROLE_COLOURS[_role(r.arch_id, bool(r.role), answer)] for *_, r in points],
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
        marker={"symbol": "line-ew-open", "size": 26, "color": "#333333"},
        line={"color": "#333333", "width": 1, "dash": "dot"},
        name="mean",
        hovertemplate="mean %{y:.4f}<extra></extra>",
    )
    figure.update_xaxes(tickvals=list(range(question.n_layers + 1)))
    roles = {_role(row.arch_id, bool(row.role), answer) for *_, row in points}
    for role in [role for role in ROLE_NAMES if role in roles]:
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            marker={"color": ROLE_COLOURS[role], "size": 10},
            name=ROLE_NAMES[role],
        )
    return _noted(figure, "exploratory: a sampler chose these runs")


FIGURES: Mapping[str, Callable[[Sequence[TrialRow], Answer], Figure]] = {
    "leaderboard": lambda rows, answer: leaderboard(answer),
    "curves": learning_curves,
    "heat-map": heat_map,
    "pareto": lambda rows, answer: pareto(answer),
    "counts": cheap_counts,
}


def _figure(question: Question, title: str, x: str, y: str) -> Figure:
    from plotly.graph_objects import Figure

    figure = Figure()
    subtitle = "; ".join(part for part in (question.task, question.size, _length(question)) if part)
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "subtitle": {"text": subtitle}, "x": 0.01, "y": 0.95},
        width=WIDTH,
        height=HEIGHT,
        margin={"l": 80, "r": 30, "t": 95, "b": 95},
        font={"family": "DejaVu Sans, Verdana, sans-serif", "size": 13},
        legend={"groupclick": "togglegroup"},
    )
    figure.update_xaxes(title_text=x, automargin=True, zeroline=False)
    figure.update_yaxes(title_text=y, automargin=True)
    return figure


def _noted(figure: Figure, note: str) -> Figure:
    figure.add_annotation(
        text=note,
        xref="paper",
        yref="paper",
        x=0,
        y=0,
        yshift=-72,
        xanchor="left",
        showarrow=False,
        font={"size": 11, "color": "#666666"},
    )
    return figure


def _length(question: Question) -> str:
    return f"{question.steps} steps" if question.steps else ""


def _axis(question: Question) -> str:
    good = "lower" if question.direction == "minimize" else "higher"
    return f"{question.objective}{in_unit(question)}, {good} is better"


def _selection(answer: Answer) -> str:
    return f"{answer.question.objective} on selection{in_unit(answer.question)}"


def _finalist_ids(answer: Answer) -> dict[str | None, str]:
    named = ("rival", "shorter", "reference", "pick")
    return {getattr(answer, name): name for name in named if getattr(answer, name)}


def _role(arch_id: str | None, is_baseline: bool, answer: Answer) -> str:
    return _finalist_ids(answer).get(arch_id, "baseline" if is_baseline else "other")


def _role_of(row: Leader, answer: Answer) -> str:
    return _role(row.arch_id, row.is_baseline, answer)


def _label(row: Leader) -> str:
    return f"{row.rank}. {row.code}"


def _bars(answer: Answer) -> list[Leader]:
    finalists = _finalist_ids(answer)
    by_need = sorted(
        answer.leaders,
        key=lambda row: (row.arch_id not in finalists, not row.is_baseline, row.rank),
    )
    return sorted(by_need[:MAX_BARS], key=lambda row: row.rank)


def _mean(values: Sequence[float] | None) -> float | None:
    return fmean(values) if values else None


def _cell_text(values: Sequence[float] | None) -> str:
    return f"{fmean(values):.3f}<br>n {len(values)}" if values else ""


def _front(rows: Sequence[Leader], question: Question) -> list[Leader]:
    front: list[Any] = []
    for row in sorted(rows, key=lambda r: (r.params or 0.0, question.sign * r.selection)):
        if not front or question.sign * (row.selection - front[-1].selection) < 0:
            front.append(row)
    return front
