"""The installed Chromium, driven by Playwright for tests; a page tells of all that goes wrong.

    with launched() as browser, opened(browser, width=375, dark=True) as page:
        page.goto("http://127.0.0.1:8765/studies")
        expect(page.get_by_role("table")).to_be_visible()

Tests take the fixture `browser` of tests/conftest.py, one process for a file of tests. Playwright
runs an event loop in this thread as long as it lives, so nothing else here may run one meanwhile.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from search.figures.files import BROWSERS

BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
PATIENCE_MS = 60_000.0  # a busy machine is slow, and no test here is about speed
VIOLATIONS = "axe.run(document).then(all => all.violations.map(one => [one.id, one.nodes[0].html]))"


@contextmanager
def launched() -> Iterator[Browser]:
    """A headless Chromium, closed at the end together with Playwright's event loop."""
    assert BROWSER is not None
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER)
        try:
            yield found
        finally:
            found.close()


@contextmanager
def opened(
    browser: Browser, width: int = 1280, *, dark: bool = False, told: Sequence[str] = ()
) -> Iterator[Page]:
    """A page with cookies of its own; at the end nothing may have gone wrong in it.

    Wrong is each error or warning of the console (what the Content-Security-Policy blocks and files
    that are not there included), each exception, and each request that failed.

    Args:
        browser: The browser.
        width: Of the window, in pixels.
        dark: Whether the reader wishes dark colours.
        told: Parts of the messages that the test brings about, in their order.
    """
    troubles: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            troubles.append(message.text)

    def on_failure(request: Request) -> None:
        # A page that is left drops its stream of events; what was refused stands in the console.
        if request.failure != "net::ERR_ABORTED":
            troubles.append(f"{request.url}: {request.failure}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", on_failure)
    try:
        yield page
        assert len(troubles) == len(told), troubles
        assert all(part in text for part, text in zip(told, troubles, strict=True)), troubles
    finally:
        context.close()


def expect_settled(page: Page) -> None:
    """Waits until the answer is there and every figure in sight is drawn."""
    expect(page.locator("[data-pending]")).to_have_count(0)
    bare = page.locator("section:not([hidden]) figure .plot:not(:has(.main-svg))")
    expect(bare).to_have_count(0)


@cache
def _axe() -> str:
    return files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def violations(page: Page) -> list[list[str]]:
    """What axe-core finds on the page as it stands: each rule with one element that breaks it."""
    page.evaluate(f"{_axe()};0")
    found: list[list[str]] = page.evaluate(VIOLATIONS)
    return found
