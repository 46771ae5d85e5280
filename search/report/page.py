"""A report as one HTML page that needs no network: text, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.figures.shown import PageFigure, page_figure
from search.report.document import Document, document_of

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.report.about import About
    from search.rows import TrialRow

LONG_CODE = 12  # lines; longer blocks are folded


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


def _figures(document: Document, rows: Sequence[TrialRow], answer: Answer) -> dict[str, PageFigure]:
    """The figures that have something to show, by name."""
    from search.figures.plots import FIGURES

    names = [name for chapter in document.chapters for name in chapter.figures]
    drawn = {name: FIGURES[name](rows, answer) for name in names}
    return {name: page_figure(name, figure) for name, figure in drawn.items() if figure.data}
