"""The page in a real browser: figures drawn, nothing wrong in the console, light and dark."""

import pytest
from browser import expect_settled, opened
from simulated import ATTENTION, Simulation, question

from search.report.about import About
from search.report.page import render_html

A, S = ATTENTION, "sepconv"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
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


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test__page__browser__draws_every_figure_without_an_error(browser, report, width, scheme):
    ink = {"light": "rgb(28, 36, 48)", "dark": "rgb(228, 233, 240)"}[scheme]
    with opened(browser, width, dark=scheme == "dark") as page:
        page.goto(report.as_uri())
        expect_settled(page)
        drawn = {one.get_attribute("id"): one for one in page.locator("figure").all()}
        parts = ("leaderboard", "pareto", "counts", "effects", "curves")
        assert drawn.keys() >= {f"figure-{name}" for name in parts}
        for name, figure in drawn.items():
            assert ink in figure.inner_html(), name
