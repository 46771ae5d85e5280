"""The pages in a real browser: nothing in the console, nothing that axe-core finds, a whole study.

A study is submitted by the form, trained for real, watched to its end, and looked through.
"""

import json
import subprocess
from importlib.resources import files

import pytest
from browser import BROWSER, Browser
from command import PROGRAM
from served import make_token, server_of
from texts import write_folder
from tiny_run import SETTINGS, own_folders

from search.store.repo import Store

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="needs a Chrome or Chromium"),
]
JSON = "application/json"
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


def test__first_study__from_the_form_to_the_csv_file__nothing_loaded_anew(
    browser, tmp_path, monkeypatch
):
    for name, value in own_folders(tmp_path).items():
        monkeypatch.setenv(name, value)
    text = write_folder(tmp_path / "text", 40, 300)
    url = f"sqlite:///{tmp_path}/search.db"
    study = nested(SETTINGS | {"training.steps": 400, "space.choices": ["attention", "sepconv"]})
    study["task"] |= {"kind": "mlm", "data": {"source": str(text)}}
    with server_of(url, data=tmp_path) as (address, _):
        page = browser.page()
        submit(page, f"{address}/studies", study, "first")
        page.wait("document.querySelector('.answer.waiting')")
        body = json.dumps({"name": "second", "budget": "3", "spec": study})
        posted = f"{{method: 'POST', headers: {{'Content-Type': '{JSON}'}}, body: {body!r}}}"
        page.value(f"fetch('/api/v1/studies', {posted}).then(answer => answer.ok)")
        with subprocess.Popen(
            [*PROGRAM, "worker", "--store", url, "--until-idle"], stderr=subprocess.DEVNULL
        ) as worker:
            page.wait("document.querySelector('#running tbody progress')", seconds=300)
            done = "document.querySelector('#live-head .badge').textContent === 'completed'"
            page.wait(done, seconds=300)
            page.wait("document.querySelector('.answer strong')")
            page.wait(SETTLED)
            assert worker.wait(60) == 0
        page.click("#leaderboard tbody a")
        page.wait("location.search.includes('arch_id')")
        page.click("#live tbody th a")
        page.wait("document.querySelector('#trial .layers') && document.querySelector('.main-svg')")
        page.open(f"{address}/compare")
        for name, value in (("a", "first"), ("b", "second")):
            page.value(f"document.getElementById('f-{name}').value = '{value}'")
        page.click("main form button")
        page.wait("document.querySelector('#compared table')")
        page.open(f"{address}/query")
        page.type("#sql", "SELECT study, number, state FROM trials_flat ORDER BY study, number")
        page.click("main form button")
        page.wait("document.querySelector('a[download]')")
        rows = page.value("fetch(document.querySelector('a[download]').href).then(a => a.text())")
        assert rows.splitlines() == [
            "study,number,state",
            *(f"{name},{n},completed" for name in ("first", "second") for n in range(3)),
        ]
        assert page.troubles == []
        page.close()


def submit(page, address, study, name):
    """Fills in the form: a slip first, then the study; waits for its plan, and submits it."""
    page.open(address)
    page.click("a.button.main")
    page.wait("document.querySelector('[data-valid]')")
    page.click("summary[data-text]")
    page.type("#text", json.dumps(study | {"tolerence": 0.1}))
    page.wait("document.querySelector('#checked .problem')")
    assert "line 1: tolerence" in page.value("checked.textContent")
    page.type("#text", json.dumps(study))
    page.type("#name", name)
    page.type("#budget", "3")
    page.wait("document.querySelector('#checked [data-valid]') && !plan.disabled")
    assert page.value("document.querySelector('[data-key=steps] input').value") == "400"
    assert page.value("send.disabled")
    page.click("#plan")
    page.wait("planned.querySelector('progress')")
    page.wait("!send.disabled", seconds=300)
    assert "3 trials" in page.value("planned.textContent")
    page.click("#send")
    page.wait(f"location.pathname === '/studies/{name}'")


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
        page.value("window.confirm = text => { window.asked = text; return false; }; 0")
        page.click("[data-call$=stop]")
        page.wait("window.asked")
        assert "demo for good" in page.value("window.asked")
        page.click("[data-log-out]")
        page.wait("location.pathname === '/login'")
        assert page.troubles == []
        page.close()
    with Store.open(filled) as store:
        assert store.study("demo").state == "paused"
