"""The pages in a real browser: nothing in the console, nothing that axe-core finds, a whole study.

A study is submitted by the form, trained for real, watched to its end, and looked through.
"""

import json
from importlib.resources import files

import pytest
from browser import BROWSER, Browser
from served import make_token, server_of
from texts import write_folder
from tiny_run import SETTINGS, own_folders

import search.planning.plan
from search.api import run
from search.engine.observer import RunObserver
from search.errors import RunFailedError
from search.store.repo import Store

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="needs a Chrome or Chromium"),
]
AXE = "axe.run(document).then(found => found.violations.map(one => [one.id, one.nodes[0].html]))"
SETTLED = (
    "!document.querySelector('[data-pending]')"
    " && [...document.querySelectorAll('section:not([hidden]) figure .plot')]"
    ".every(place => place.querySelector('.main-svg'))"
)
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
    "/submit",
    "/login",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def violations(page):
    page.value(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8") + ";0")
    return page.value(AXE)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (375, True)])
def test__pages__wide_and_narrow__accessible_without_an_error(browser, filled, width, dark):
    with server_of(filled) as (address, _):
        for path in PATHS:
            page = browser.page(width, dark=dark)
            page.open(address + path)
            page.wait(SETTLED)
            assert violations(page) == [], path
            assert page.value("document.documentElement.scrollWidth") <= width, path
            assert page.troubles == [], path
            page.close()


class Onlooker(RunObserver):
    """Looks at the study's page while its first trial is in hand."""

    def __init__(self, page):
        self.page = page
        self.seen = []

    def validation(self, trial, step, metrics):
        if not self.seen:
            self.page.wait("document.querySelector('#running tbody tr')")
            self.seen.append(self.page.value("document.querySelector('#running tbody').innerText"))


def test__submit_to_answer__nothing_loaded_anew__the_page_follows_the_run(
    browser, tmp_path, monkeypatch
):
    for name, value in own_folders(tmp_path).items():
        monkeypatch.setenv(name, value)
    text = write_folder(tmp_path / "text", 40, 300)
    url = f"sqlite:///{tmp_path}/search.db"
    study = nested(SETTINGS) | {"space": {"choices": ["attention", "sepconv"]}}
    study["task"] |= {"kind": "mlm", "data": {"source": str(text)}}

    def no_plan(*_, **__):
        raise RunFailedError("no process to time in")

    monkeypatch.setattr(search.planning.plan, "plan_study", no_plan)
    with server_of(url, data=tmp_path) as (address, _):
        page = browser.page()
        page.open(f"{address}/studies")
        page.click("a.button.main")
        page.wait("document.querySelector('[data-valid]')")
        page.type("#text", json.dumps(study | {"tolerence": 0.1}))
        page.wait("document.querySelector('#checked .problem')")
        assert "line 1: tolerence" in page.value("document.querySelector('#checked').textContent")
        page.type("#text", json.dumps(study))
        page.type("#name", "first")
        page.type("#budget", "3")
        page.wait("document.querySelector('#checked [data-valid]') && !plan.disabled")
        assert page.value("send.disabled")
        page.click("#plan")
        page.wait("!send.disabled")
        assert "no process to time in" in page.value("planned.textContent")
        page.troubles.clear()  # the browser tells of the refusal
        page.click("#send")
        page.wait("location.pathname === '/studies/first'")
        page.wait("document.querySelector('.answer.waiting')")
        onlooker = Onlooker(page)
        outcome = run(study, "3", url, name="first", in_process=True, observer=onlooker)
        assert outcome.completed == 3
        assert "baseline" in onlooker.seen[0]
        page.wait("document.querySelector('#live-head .badge').textContent === 'completed'")
        page.wait("document.querySelector('.answer strong')")
        page.wait(SETTLED)
        page.click("#leaderboard tbody a")
        page.wait("location.search.includes('arch_id')")
        page.click("#live tbody th a")
        page.wait("document.querySelector('#trial .layers') && document.querySelector('.main-svg')")
        assert page.troubles == []
        page.close()


def nested(settings):
    """Settings named by paths as a document."""
    document = {}
    for path, value in settings.items():
        *above, last = path.split(".")
        place = document
        for part in above:
            place = place.setdefault(part, {})
        place[last] = value
    return document


def test__login__token_in_the_form__cookie_that_scripts_cannot_read(browser, filled):
    token = make_token(filled, "submit", "ann")
    with server_of(filled) as (address, _):
        page = browser.page()
        page.open(f"{address}/studies/demo")
        page.wait("document.querySelector('#token')")
        page.type("#token", "wrong")
        page.press("Enter")
        page.wait("!document.querySelector('#said').hidden")
        page.troubles.clear()  # the browser tells of the 401
        page.type("#token", token)
        page.press("Enter")
        page.wait("location.pathname === '/studies/demo'")
        assert token not in page.value("document.cookie")
        page.click("[data-call$=pause]")
        page.wait("document.querySelector('#live-head .badge').textContent === 'paused'")
        page.click("[data-log-out]")
        page.wait("location.pathname === '/login'")
        assert page.troubles == []
        page.close()
    with Store.open(filled) as store:
        assert store.study("demo").state == "paused"
