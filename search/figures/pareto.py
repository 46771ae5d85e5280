"""Figure of the Pareto front: the first objective against a cost or the second objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.figures.style import INK, ROLE_COLOURS, ROLE_NAMES, blank, noted, role_of_trial
from search.wording import measure_name

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.answers.answer import Answer
    from search.answers.pareto import FrontPoint
    from search.spec.measures import Measure

SYMBOLS = {"on the front": "diamond", "possibly": "diamond-open", "over a limit": "x-thin-open"}
COUNTS = ("", "FLOPs", "parameters")  # units that repeat the name
Y, X = 0, 1  # places of the objectives that are drawn
MAX_BEATEN = 400


def pareto(answer: Answer) -> Figure:
    """The front and everything beside it, with the intervals of the means."""
    front = answer.pareto
    figure = blank(
        answer.question, "Cost and quality", _axis(front.measures[X]), _axis(front.measures[Y])
    )
    best = sorted(
        (point for point in front.points if point.is_best), key=lambda point: point.values[X]
    )
    if len(front.measures) == 2 and best:
        figure.add_scatter(
            x=[point.values[X] for point in best],
            y=[point.values[Y] for point in best],
            mode="lines",
            line={"color": INK, "dash": "dot", "shape": "hv", "width": 1.5},
            name="best means",
            hoverinfo="skip",
        )
    points, hidden = _drawn(front.points, answer)
    for role, name in list(ROLE_NAMES.items())[::-1]:
        members = [point for point in points if _role(point, answer) == role]
        if members:
            _add(figure, members, role, name, front.measures)
    note = "diamonds: on the front, open ones possibly; bars: 95 % intervals"
    return noted(figure, note, f"{hidden} worse stacks are not drawn" if hidden else "")


def _drawn(points: Sequence[FrontPoint], answer: Answer) -> tuple[list[FrontPoint], int]:
    """The points to draw, and how many are left out: beaten ones, the worst first."""
    beaten = [
        point
        for point in points
        if point.word not in ("on the front", "possibly")
        and not point.is_best
        and _role(point, answer) == "other"
    ]
    sign = answer.question.sign
    beaten.sort(key=lambda point: sign * point.values[Y])
    hidden = {point.arch_id for point in beaten[MAX_BEATEN:]}
    return [point for point in points if point.arch_id not in hidden], len(hidden)


def _add(
    figure: Figure,
    points: Sequence[FrontPoint],
    role: str,
    name: str,
    measures: Sequence[Measure],
) -> None:
    is_named = role not in ("other", "baseline")
    figure.add_scatter(
        x=[point.values[X] for point in points],
        y=[point.values[Y] for point in points],
        error_x=_bars(points, X),
        error_y=_bars(points, Y),
        mode="markers+text" if is_named else "markers",
        text=[point.code for point in points],
        textposition="bottom center",
        cliponaxis=False,
        marker={
            "color": ROLE_COLOURS[role],
            "size": 13 if is_named else 9,
            "symbol": [SYMBOLS.get(point.word, "circle") for point in points],
            "line": {"width": 2, "color": ROLE_COLOURS[role]},
        },
        name=name,
        customdata=[[point.code, point.word, _readings(point, measures)] for point in points],
        hovertemplate="%{customdata[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    )


def _bars(points: Sequence[FrontPoint], index: int) -> dict[str, object]:
    """The ends of the intervals as Plotly's error bars; none where the noise is not known."""
    above, below = [], []
    for point in points:
        low, high, value = point.low[index], point.high[index], point.values[index]
        above.append(0.0 if high is None else high - value)
        below.append(0.0 if low is None else value - low)
    is_drawn = any(above) or any(below)
    return {"array": above, "arrayminus": below, "thickness": 1.2, "visible": is_drawn}


def _readings(point: FrontPoint, measures: Sequence[Measure]) -> str:
    return "<br>".join(
        f"{measure_name(measure.name)} {value:.4g}"
        + (f" {measure.unit}" if measure.unit not in COUNTS else "")
        for measure, value in zip(measures, point.values, strict=True)
    )


def _axis(measure: Measure) -> str:
    good = "lower" if measure.direction == "minimize" else "higher"
    is_named = measure.unit in COUNTS
    unit = "" if is_named else f" ({measure.unit})"
    return f"{measure_name(measure.name)}{unit}, {good} is better"


def _role(point: FrontPoint, answer: Answer) -> str:
    return role_of_trial(point.arch_id, bool(point.roles), answer)
