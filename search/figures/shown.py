"""Figures as the pages take them: data that cannot end a script element, and words beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class PageFigure:
    """A figure of a page.

    Attributes:
        key: its anchor.
        title: what it shows.
        text: how to read it.
        data: Plotly's JSON, safe inside a script element.
        height: in pixels.
        left_out: what is not drawn, empty where all is.
    """

    key: str
    title: str
    text: str
    data: str
    height: int
    left_out: str = ""


def page_figure(name: str, figure: Figure, title: str = "", text: str = "") -> PageFigure:
    """Sets a figure for a page, which has heading and caption of its own and sets the width.

    Args:
        name: its anchor, and its caption's name where no words are given.
        figure: the figure.
        title: what it shows.
        text: how to read it.
    """
    from search.figures.captions import CAPTIONS

    if not title:
        title, text = CAPTIONS[name]
    document = json.loads(figure.to_json())
    layout = document["layout"]
    height = int(layout["height"])
    left_out = layout.pop("meta", {}).get("left_out", "")
    for key in ("title", "annotations", "width", "margin"):
        layout.pop(key, None)
    return PageFigure(name, title, text, script_json(document), height, left_out)


def script_json(document: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    text = json.dumps(document, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
