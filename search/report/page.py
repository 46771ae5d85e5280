"""A report as one HTML page that needs no network: text, tables and figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search.report.document import Document, document_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from search.answers.answer import Answer
    from search.report.about import About
    from search.rows import TrialRow

LONG_CODE = 12  # lines; longer blocks are folded


@dataclass(frozen=True)
class PageFigure:
    """A figure of a page.

    Attributes:
        key: its anchor.
        title: what it shows.
        text: how to read it.
        data: Plotly's JSON, safe inside a script element.
        height: in pixels.
    """

    key: str
    title: str
    text: str
    data: str
    height: int


def render_html(answer: Answer, rows: Sequence[TrialRow], about: About) -> str:
    """The answer as one page.

    All text is escaped: names, notations and errors may hold anything.

    Args:
        answer: the answer.
        rows: the study's trials with their curves, for the figures.
        about: which study it is of.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("search.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    document = document_of(answer, about)
    figures = _figures(document, rows, answer)
    return environment.get_template("page.html").render(
        document=document,
        figures=figures,
        plotly=Markup(get_plotlyjs()) if figures else "",
        long_code=LONG_CODE,
    )


def script_json(document: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    text = json.dumps(document, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _figures(document: Document, rows: Sequence[TrialRow], answer: Answer) -> dict[str, PageFigure]:
    """The figures that have something to show, by name."""
    from search.figures.plots import FIGURES

    names = [name for chapter in document.chapters for name in chapter.figures]
    drawn = {name: FIGURES[name](rows, answer) for name in names}
    return {name: _page_figure(name, figure) for name, figure in drawn.items() if figure.data}


def _page_figure(name: str, figure: Figure) -> PageFigure:
    from search.figures.captions import CAPTIONS

    title, text = CAPTIONS[name]
    document = json.loads(figure.to_json())
    layout = document["layout"]
    height = int(layout["height"])
    # The page has heading and caption of its own, and fits the figure to its width.
    for key in ("title", "annotations", "width", "margin"):
        layout.pop(key, None)
    return PageFigure(name, title, text, script_json(document), height)
