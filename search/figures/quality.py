"""Figures of quality: leaderboard and learning curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.answers.arms import explored_rows, value_of
from search.figures.style import (
    ROLE_COLOURS,
    ROLE_NAMES,
    axis,
    blank,
    finalist_ids,
    noted,
    role_of,
    role_of_trial,
    selection_axis,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.answers.answer import Answer
    from search.answers.leaders import Leader
    from search.rows import TrialRow


MAX_BARS = 20
MAX_GREY_CURVES = 60


def learning_curves(rows: Sequence[TrialRow], answer: Answer) -> Figure:
    """Objective on the selection split by training step, finalists in colour."""
    figure = blank(answer.question, "Learning curves", "training step", selection_axis(answer))
    named: set[str] = set()
    curves, hidden = _curves(rows, answer)
    for row in curves:
        role = role_of_trial(row.arch_id, row.phase == "baseline", answer)
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
    if hidden:
        noted(figure, "", f"{hidden} worse trials are not drawn")
    return figure


def _curves(rows: Sequence[TrialRow], answer: Answer) -> tuple[list[TrialRow], int]:
    """The trials to draw, finalists last and on top, and how many others there are.

    All finalists and baselines are drawn, of the others the best.
    """
    question = answer.question
    finalists = finalist_ids(answer)
    curves = [row for row in explored_rows(rows, question) if len(row.curve) > 1]
    others = [row for row in curves if row.arch_id not in finalists and row.phase != "baseline"]
    if len(others) > MAX_GREY_CURVES:

        def badness(row: TrialRow) -> float:
            value = value_of(row.selection, question.objective)
            return math.inf if value is None else question.sign * value

        others.sort(key=badness)
    hidden = {row.id for row in others[MAX_GREY_CURVES:]}
    drawn = [row for row in curves if row.id not in hidden]
    return sorted(drawn, key=lambda row: row.arch_id in finalists), len(hidden)


def leaderboard(answer: Answer) -> Figure:
    """Best architectures, finalists and baselines: selection, and test with repeat SD."""
    question = answer.question
    figure = blank(question, "Leaderboard", axis(question), "")
    shown = _bars(answer)[::-1]
    for role, name in ROLE_NAMES.items():
        members = [row for row in shown if role_of(row, answer) == role]
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
    return noted(figure, "open: selection split, one seed; filled: mean on test, bar = repeat SD")


def _label(row: Leader) -> str:
    return f"{row.rank}. {row.code}"


def _bars(answer: Answer) -> list[Leader]:
    finalists = finalist_ids(answer)
    by_need = sorted(
        answer.leaders,
        key=lambda row: (row.arch_id not in finalists, not row.is_baseline, row.rank),
    )
    return sorted(by_need[:MAX_BARS], key=lambda row: row.rank)
