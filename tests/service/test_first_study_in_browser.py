"""A study's whole way in a real browser: form, worker, answer, trial, comparison, CSV file."""

import csv
import json
import subprocess
from pathlib import Path
from urllib.parse import urljoin

from browser import expect_settled, opened, violations
from command import PROGRAM
from playwright.sync_api import expect
from served import server_of
from texts import write_folder
from tiny_run import SETTINGS, own_folders

from search.store.repo import Store

SQL = "SELECT study, number, state, code, selection FROM trials_flat ORDER BY study, number"


def test__first_study__from_the_form_to_the_csv_file__nothing_loaded_anew(
    browser, tmp_path, monkeypatch
):
    for name, value in own_folders(tmp_path).items():
        monkeypatch.setenv(name, value)
    text = write_folder(tmp_path / "text", 40, 300)
    url = f"sqlite:///{tmp_path}/search.db"
    study = nested(SETTINGS | {"training.steps": 400, "space.choices": ["attention", "sepconv"]})
    study["task"] |= {"kind": "mlm", "data": {"source": str(text)}}
    with server_of(url, data=tmp_path) as (address, _), opened(browser) as page:
        submit(page, f"{address}/studies", study, "first")
        asked = page.request.post(
            f"{address}/api/v1/studies", data={"name": "second", "budget": "3", "spec": study}
        )
        assert asked.ok, asked.text()
        page.evaluate("window.stays = true")
        watch_to_the_end(page, url)
        assert page.evaluate("window.stays"), "the page was loaded anew"
        with Store.open(url) as store:
            rows = [list(row) for row in store.query(SQL).rows]
        open_the_best(page, rows)
        compare(page, rows)
        assert download(page) == [[str(value) for value in row] for row in rows]
    assert [row[:3] for row in rows] == [
        [name, n, "completed"] for name in ("first", "second") for n in range(3)
    ]


def submit(page, address, study, name):
    """Fills in the form: a slip first, then the study; waits for its plan, and submits it."""
    page.goto(address)
    page.get_by_role("main").get_by_role("link", name="New study").click()
    checked, send = page.locator("#checked"), page.get_by_role("button", name="Submit")
    expect(checked).to_contain_text("architectures")
    page.get_by_text("As text", exact=True).click()
    as_text = page.get_by_label("The same study as a file")
    as_text.fill(json.dumps(study | {"tolerence": 0.1}))
    expect(page.get_by_role("alert")).to_contain_text("line 1: tolerence")
    assert violations(page) == []
    as_text.fill(json.dumps(study))
    page.get_by_label("Name;").fill(name)
    page.get_by_label("Budget:").fill("3")
    expect(checked).to_contain_text(name)
    expect(page.get_by_label("Choices of each layer").get_by_role("listitem")).to_have_text(
        ["layer 1 attention sepconv", "layer 0 attention sepconv"]
    )
    expect(page.get_by_label("steps", exact=False).first).to_have_value("400")
    expect(send).to_be_disabled()
    page.get_by_role("button", name="Plan").click()
    expect(page.get_by_role("progressbar", name="Planning")).to_be_visible()
    expect(send).to_be_disabled()
    expect(page.get_by_role("heading", name="What the budget buys")).to_be_visible()
    expect(page.locator("#planned")).to_contain_text("3 trials")
    assert violations(page) == []
    send.click()
    page.wait_for_url(f"**/studies/{name}")


def watch_to_the_end(page, url):
    """Lets a worker train both studies while the page of the first is open."""
    expect(page.locator("#answer")).to_contain_text("No trial has started yet")
    worker = [*PROGRAM, "worker", "--store", url, "--until-idle"]
    with subprocess.Popen(worker, stderr=subprocess.DEVNULL) as process:
        running = page.get_by_role("region", name="Running now")
        expect(running.get_by_role("progressbar").first).to_be_visible(timeout=300_000)
        assert violations(page) == []
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_have_text("first completed", timeout=300_000)
        expect(page.get_by_role("button", name="Budget")).to_be_visible()  # for more trials
        expect(page.locator("#answer strong")).to_contain_text("the best stack found is")
        expect_settled(page)
        assert process.wait(60) == 0


def best_of(study, rows):
    """Number and layers of a study's best trial, by the store."""
    _, number, _, code, _ = min((row for row in rows if row[0] == study), key=lambda row: row[4])
    return str(number), code


def open_the_best(page, rows):
    """Goes from the leaderboard's first row to the trial behind it."""
    number, code = best_of("first", rows)
    page.get_by_role("table", name="Leaderboard").get_by_role("link").first.click()
    page.wait_for_url("**/trials?arch_id=*")
    page.get_by_role("table").get_by_role("link", name=number, exact=True).click()
    expect(page.get_by_role("heading", level=2).first).to_have_text(f"Trial {number} completed")
    kinds = {"A": "attention", "S": "sepconv"}
    layers = page.locator("ol.layers").get_by_role("listitem")
    expect(layers).to_contain_text([kinds[letter] for letter in reversed(code)])
    expect_settled(page)


def compare(page, rows):
    """Chooses both studies and sees the best of each side by side."""
    page.get_by_role("link", name="Compare").click()
    page.get_by_label("First study").select_option("first")
    page.get_by_label("Second study").select_option("second")
    page.get_by_role("button", name="Compare").click()
    picks = page.get_by_role("table", name="Picks")
    for name in ("first", "second"):
        row = picks.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))
        expect(row.get_by_role("cell").nth(2)).to_have_text(best_of(name, rows)[1])
    href = page.get_by_role("link", name="Comparison as JSON").get_attribute("href")
    answer = page.request.get(urljoin(page.url, href)).json()
    assert answer["studies"] == ["first", "second"]
    assert violations(page) == []
    expect_settled(page)


def download(page):
    """Runs a query, saves its CSV file, and returns the rows in it."""
    page.get_by_role("link", name="SQL").click()
    query = page.get_by_label("Query")
    query.fill(SQL)
    query.press("Control+Enter")
    expect(page.get_by_role("table", name="Result").get_by_role("row")).to_have_count(7)
    with page.expect_download() as saving:
        page.get_by_role("link", name="Download as CSV").click()
    assert saving.value.suggested_filename == "query.csv"
    head, *rows = csv.reader(Path(saving.value.path()).read_text(encoding="utf-8").splitlines())
    assert head == ["study", "number", "state", "code", "selection"]
    return rows


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
