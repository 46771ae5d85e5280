"""Save one figure of the mixers' commands to the file that was asked for."""

from pathlib import Path
from typing import TYPE_CHECKING

from search.cli.output import note
from search.cli.plot import PAGE_ENDINGS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def draw(figure: "Figure", path: Path, *, title: str) -> None:
    """Write a page or a picture, by the file's ending, and say where it lies."""
    from search.figures.files import write_html, write_image

    if path.suffix.lower() in PAGE_ENDINGS:
        write_html([figure], path, title=title)
    else:
        write_image(figure, path)
    note(f"wrote {path}")
