"""Every page in a real browser, wide and narrow, light and dark."""

import pytest
from browser import expect_settled, opened, violations
from served import server_of

PATHS = (
    "/studies",
    "/studies/demo",
    "/studies/demo/trials?sort=-selection",
    "/studies/demo/trials/0",
    "/studies/demo/leaderboard",
    "/studies/demo/spec",
    "/compare",
    "/query?sql=SELECT%20code,%20mean%20FROM%20leaderboard",
    "/mixers",
    "/mixers/sepconv",
    "/submit",
    "/login",
)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (375, True)])
def test__pages__wide_and_narrow__accessible_without_an_error(browser, filled, width, dark):
    with server_of(filled) as (address, _):
        for path in PATHS:
            with opened(browser, width, dark=dark) as page:
                page.goto(address + path)
                expect_settled(page)
                assert violations(page) == [], path
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
