"""How all figures look, and which colour an architecture has in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.wording import in_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.answers.answer import Answer
    from search.answers.leaders import Leader
    from search.answers.question import Question

# Okabe and Ito's palette: told apart by colour-blind readers too.
REFERENCE_COLOUR = "#D55E00"
PICK_COLOUR = "#009E73"
SHORTER_COLOUR = "#CC79A7"
RIVAL_COLOUR = "#0072B2"
BASELINE_COLOUR = "#56B4E9"
OTHER_COLOUR = "#B8BEC6"
MIXER_COLOURS = (RIVAL_COLOUR, REFERENCE_COLOUR, PICK_COLOUR, SHORTER_COLOUR, BASELINE_COLOUR)
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
INK = "#444444"  # lines that pages draw in the colour of their text
WIDTH, HEIGHT, SIDE_OF_SQUARE = 900, 520, 720
FONT = {"family": "DejaVu Sans, Verdana, sans-serif", "size": 13}


def blank(question: Question, title: str, x: str, y: str) -> Figure:
    """An empty figure with title, task, size and length."""
    from plotly.graph_objects import Figure

    figure = Figure()
    subtitle = "; ".join(part for part in (question.task, question.size, _length(question)) if part)
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "subtitle": {"text": subtitle}, "x": 0.01, "y": 0.95},
        width=WIDTH,
        height=HEIGHT,
        margin={"l": 80, "r": 30, "t": 95, "b": 95},
        font=FONT,
        legend={"groupclick": "togglegroup"},
    )
    figure.update_xaxes(title_text=x, automargin=True, zeroline=False)
    figure.update_yaxes(title_text=y, automargin=True)
    return figure


def square_of_tokens(figure: Figure, title: str, subtitle: str) -> Figure:
    """Lays out a heat map whose rows are outputs and whose columns are tokens."""
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "subtitle": {"text": subtitle}, "x": 0.01, "y": 0.95},
        width=SIDE_OF_SQUARE,
        height=SIDE_OF_SQUARE,
        margin={"l": 80, "r": 30, "t": 95, "b": 95},
        font=FONT,
        plot_bgcolor="#EEEEEE",
    )
    figure.update_xaxes(title_text="token", constrain="domain", showgrid=False)
    figure.update_yaxes(
        title_text="output", autorange="reversed", scaleanchor="x", showgrid=False, zeroline=False
    )
    return figure


def noted(figure: Figure, note: str, left_out: str = "") -> Figure:
    """Adds how to read a figure and what it does not draw, below it."""
    if left_out:
        figure.update_layout(meta={"left_out": left_out})  # for pages with captions of their own
    figure.add_annotation(
        text="; ".join(part for part in (note, left_out) if part),
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


def axis(question: Question) -> str:
    """The objective, its unit and its good direction."""
    good = "lower" if question.direction == "minimize" else "higher"
    return f"{question.objective}{in_unit(question)}, {good} is better"


def selection_axis(answer: Answer) -> str:
    """The objective on the selection split."""
    return f"{answer.question.objective} on selection{in_unit(answer.question)}"


def finalist_ids(answer: Answer) -> dict[str | None, str]:
    """Finalist name by architecture, the more important name where there are two."""
    named = ("rival", "shorter", "reference", "pick")
    return {getattr(answer, name): name for name in named if getattr(answer, name)}


def role_of_trial(arch_id: str | None, is_baseline: bool, answer: Answer) -> str:
    """What an architecture is: a key of `ROLE_NAMES`."""
    return finalist_ids(answer).get(arch_id, "baseline" if is_baseline else "other")


def role_of(row: Leader, answer: Answer) -> str:
    """What a line of the leaderboard is: a key of `ROLE_NAMES`."""
    return role_of_trial(row.arch_id, row.is_baseline, answer)


def _length(question: Question) -> str:
    return f"{question.steps} steps" if question.steps else ""
