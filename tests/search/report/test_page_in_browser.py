"""The page in a real browser: figures drawn, nothing wrong in the console, light and dark."""

import re
import shutil
import subprocess

import pytest
from simulated import ATTENTION, Simulation, question

from search.figures.files import BROWSERS
from search.report.about import About
from search.report.page import render_html

BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
A, S = ATTENTION, "sepconv"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    simulation = Simulation(
        lambda layers: 3.0 - 0.05 * layers.count(S) + 0.1 * (4 - len(layers)),
        lambda layers: 0.01,
        asked=question(),
        seed=4,
    )
    for base in (A, "bproj", "average"):
        for mixer in (A, S):
            simulation.train((mixer, base, base, base), phase="search")
    simulation.run(36)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(
        render_html(simulation.answer(), simulation.rows, About("demo")), encoding="utf-8"
    )
    return path


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs a Chrome or Chromium")
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test__page__browser__draws_every_figure_without_an_error(page, tmp_path, width, scheme):
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    done = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--user-data-dir={tmp_path}", f"--window-size={width},900"),
            *("--enable-logging=stderr", "--virtual-time-budget=10000", *dark),
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr
    figures = re.findall(r'<figure id="figure-([\w-]+)">(.*?)</figure>', done.stdout, re.DOTALL)
    assert {name for name, _ in figures} >= {"leaderboard", "pareto", "counts", "effects", "curves"}
    ink = {"light": "rgb(28, 36, 48)", "dark": "rgb(228, 233, 240)"}[scheme]
    for name, drawn in figures:
        assert 'class="main-svg"' in drawn, name
        assert ink in drawn, name
