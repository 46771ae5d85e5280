"""Saves figures: one HTML page that needs no network, or pictures drawn by a Chrome."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from search.errors import InputError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PICTURE_ENDINGS = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp")


def write_html(
    figures: Sequence[Figure],
    path: Path,
    *,
    title: str,
    plotly_js: Literal["inline", "file"] = "inline",
) -> None:
    """Writes figures into one page that needs no network.

    Args:
        figures: what to show, in order.
        path: the page.
        title: its title.
        plotly_js: ``inline`` puts the library into the page (5 MB), ``file`` beside it as
            ``plotly.min.js``.
    """
    from html import escape

    from plotly.offline import get_plotlyjs

    if plotly_js == "file":
        (path.parent / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
        library = '<script src="plotly.min.js"></script>'
    else:
        library = f"<script>{get_plotlyjs()}</script>"
    body = "\n".join(
        figure.to_html(full_html=False, include_plotlyjs=False, default_width="100%")
        for figure in figures
    )
    path.write_text(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>{library}</head>\n<body>\n{body}\n</body></html>\n",
        encoding="utf-8",
    )


def write_image(figure: Figure, path: Path, *, scale: float = 2.0) -> None:
    """Writes a figure as PNG, SVG, PDF, JPEG or WebP, by the file's ending.

    Raises:
        InputError: an ending that is no picture's; the ``images`` extra or a Chrome to draw with
            is missing.
    """
    if path.suffix.lower() not in PICTURE_ENDINGS:
        raise InputError(
            f"{path.name}: no picture ends so; use one of {' '.join(PICTURE_ENDINGS)} or .html"
        )
    try:
        import kaleido  # noqa: F401
    except ImportError:
        raise InputError(
            f"{path.name}: pictures need the extra 'images' (pip install 'mixsearch[images]'); "
            "HTML needs nothing"
        ) from None
    browser = browser_path()
    if browser is None:
        raise InputError(
            f"{path.name}: no Chrome or Chromium found to draw pictures; install one "
            "(Debian: apt install chromium) or set BROWSER_PATH; HTML needs nothing"
        )
    os.environ.setdefault("BROWSER_PATH", browser)
    figure.write_image(str(path), scale=scale)


def browser_path() -> str | None:
    """The Chrome that draws pictures: ``BROWSER_PATH``, else the first found on the path."""
    named = os.environ.get("BROWSER_PATH")
    if named:
        return named if Path(named).exists() else None
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)
