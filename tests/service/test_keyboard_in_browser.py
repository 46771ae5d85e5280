"""Pages without a mouse: the Tab key reaches everything in the order in which it is read."""

import pytest
from browser import expect_settled, opened
from playwright.sync_api import expect
from served import server_of

PATHS = (
    "/studies",
    "/studies/demo",
    "/studies/demo/leaderboard",
    "/studies/demo/trials/0",
    "/compare",
    "/query?sql=SELECT%20code,%20mean%20FROM%20leaderboard",
    "/mixers",
    "/submit",
    "/login",
)
# Numbers what can be used in the order of the document, from the top of the page.
NUMBER = """() => {
  const all = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  const usable = [...document.querySelectorAll(all)]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled);
  usable.forEach((one, at) => { one.dataset.at = at; });
  return usable.length;
}"""
HERE = """() => {
  const here = document.activeElement;
  return [Number(here.dataset.at), getComputedStyle(here).outlineStyle, here.outerHTML];
}"""


@pytest.mark.parametrize("path", PATHS)
def test__tab__reaches_all_that_can_be_used_in_order__and_shows_where_it_is(browser, filled, path):
    with server_of(filled) as (address, _), opened(browser) as page:
        page.goto(address + path)
        expect_settled(page)
        if path == "/submit":
            expect(page.locator("[data-valid]")).to_be_visible()
        n = page.evaluate(NUMBER)
        assert n >= 5
        for expected in range(n):
            page.keyboard.press("Tab")
            at, outline, what = page.evaluate(HERE)
            assert (at, outline) == (expected, "solid"), what


def test__skip_link__comes_first_into_sight__and_leads_past_the_navigation(browser, filled):
    with server_of(filled) as (address, _), opened(browser) as page:
        page.goto(f"{address}/studies/demo")
        expect_settled(page)
        skip = page.get_by_role("link", name="Skip to the content")
        assert skip.bounding_box()["x"] < 0
        page.keyboard.press("Tab")
        expect(skip).to_be_focused()
        assert skip.bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        expect(page.get_by_role("main")).to_be_focused()
        page.keyboard.press("Tab")
        crumbs = page.get_by_role("main").get_by_role("link", name="Studies")
        expect(crumbs).to_be_focused()
