"""The pages as a program reads them: what they show, that nothing in them runs, empty and wrong."""

import json
from html.parser import HTMLParser

import pytest
import store_factory as factory
from probed import VOCABULARY, encoder_of, random_contexts
from served import client_of, make_token

from search.probe import probe
from search.spec.study import StudySpec
from search.store.repo import Store
from service.pages.login import own_path
from service.pages.tables import List
from service.pages.trial import PROBE_WORDS
from service.pages.words import ago

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
PAGES = ("", "/trials", "/leaderboard", "/spec")


class Outline(HTMLParser):
    """Tags with attributes, links, visible text, and the data of figures."""

    VOID = frozenset({"meta", "link", "br", "img", "input"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts, self.data = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else ("", {})
        if tag == "script" and attributes.get("type") == "application/json":
            self.data.append(json.loads(data))
        elif tag not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, wanted):
        return [attributes for tag, attributes in self.tags if tag == wanted]

    def rows(self):
        return [a for a in self.all("th") if a.get("scope") == "row"]


@pytest.fixture
def client(filled):
    with client_of(filled) as found:
        yield found


@pytest.fixture
def empty(tmp_path):
    """A client of a store without a study, and the store."""
    url = f"sqlite:///{tmp_path}/search.db"
    with Store.open(url) as store, client_of(url) as found:
        yield found, store


def settled(client, path):
    """A page whose answer is there."""
    while True:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        if "data-pending" not in answer.text:
            return Outline(answer.text)


def test__study_page__finished_study__the_answer_of_the_api_and_its_figures(client):
    page = settled(client, "/studies/demo")
    answer = client.get("/api/v1/studies/demo/report?format=markdown").text
    headline = answer.split("**")[1].replace("\\", "")
    assert headline in page.text
    assert {data["data"][0]["type"] for data in page.data} >= {"scatter", "heatmap"}
    codes = [span["aria-label"] for span in page.all("span") if span.get("class") == "stack"]
    leaders = client.get("/api/v1/studies/demo/answer").json()["leaders"]
    assert codes[: len(leaders)] == [row["code"] for row in leaders]


@pytest.mark.parametrize("path", ["/studies", "/studies/demo", "/studies/demo/trials/1", "/submit"])
def test__pages__security__no_script_in_the_text_and_the_policy_of_the_service(client, path):
    answer = client.get(path)
    assert "script-src" not in answer.headers["content-security-policy"]
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    page = Outline(answer.text)
    for script in page.all("script"):
        assert script.get("type") == "application/json" or script["src"].startswith("/static/")
    assert not [a for _, a in page.tags for name in a if name.startswith("on")]
    assert all(link["href"].startswith(("/static/", "data:")) for link in page.all("link"))


def test__pages__hostile_names_and_errors__shown_and_never_run(empty):
    client, store = empty
    study = factory.fill(store, HOSTILE.replace("/", "|"), architectures=["attention*2"])
    worker = store.register_worker()
    claim = factory.claim_and_commit(store, study, worker, "sepconv*2", seed=9, seed_index=9)
    store.fail(claim, factory.failure(f"ValueError: {HOSTILE}"))
    for path in ("/studies", f"/studies/{study}", f"/studies/{study}/trials?state=failed"):
        page = settled(client, path)
        assert "<script>alert(1)" in page.text
        assert not page.all("img")
        assert all("src" in script or "type" in script for script in page.all("script"))
    assert HOSTILE in settled(client, f"/studies/{study}/trials?state=failed").text
    asked = client.get("/query", params={"sql": f"SELECT '{HOSTILE}' AS \"{HOSTILE}\""})
    assert HOSTILE in Outline(asked.text).text


def test__trials__pages_in_turn__every_trial_once_in_the_asked_order(empty, monkeypatch):
    client, store = empty
    study = store.ensure_study("many", factory.study_spec(), factory.PLUGINS)
    worker = store.register_worker()
    for n in range(53):
        claim = factory.claim_and_commit(
            store, study.id, worker, "attention*2", seed=n, seed_index=n
        )
        store.finish(claim, factory.result(2.0 + (n * 7 % 53) / 100))
    path, seen = "/studies/many/trials?sort=selection", []
    while path:
        page = settled(client, path)
        seen += [a["href"] for a in page.all("a") if "/trials/" in a.get("href", "")]
        path = next((a["href"] for a in page.all("a") if a.get("rel") == "next"), None)
    expected = sorted(range(53), key=lambda n: n * 7 % 53)
    assert seen == [f"/studies/many/trials/{n}" for n in expected]
    assert "no trial fits" in settled(client, "/studies/many/trials?state=failed").text.lower()


def test__pages__nothing_there_yet__say_what_to_do(empty):
    client, store = empty
    assert "search run --budget 20" in settled(client, "/studies").text
    store.ensure_study("new", factory.study_spec(), factory.PLUGINS)
    for part in PAGES:
        page = settled(client, f"/studies/new{part}")
        assert len(page.all("h1")) == 1
        assert not [a for a in page.all("a") if "/export" in a["href"]]
    assert "No trial has ended with a result" in settled(client, "/studies/new/leaderboard").text


def test__study_page__only_failures__the_first_cause_and_a_link_to_them(empty):
    client, store = empty
    study = store.ensure_study("bad", factory.study_spec(), factory.PLUGINS)
    worker = store.register_worker()
    for n in range(2):
        claim = factory.claim_and_commit(store, study.id, worker, "sepconv*2", seed=n, seed_index=n)
        store.fail(claim, factory.failure("ValueError: always"))
    page = settled(client, "/studies/bad")
    assert "no finished trial" in page.text
    assert "ValueError: always" in page.text
    links = [a["href"] for a in page.all("a")]
    assert "/studies/bad/trials?state=failed" in links
    trial = settled(client, "/studies/bad/trials/0")
    assert "Traceback ... ValueError: always" in trial.text


def test__study_page__trial_in_hand__its_step_and_its_reading(empty):
    client, store = empty
    study = store.ensure_study("now", factory.study_spec(), factory.PLUGINS)
    worker = store.register_worker(host="here", pid=7)
    claim = factory.claim_and_commit(store, study.id, worker, "sepconv, attention")
    store.report(claim, factory.reports(2.5)[:2])
    page = settled(client, "/studies/now")
    assert "200 of 600" in page.text
    assert "2.9000" in page.text
    assert [data["data"][0]["y"] for data in page.data] == [[2.9]]


def test__compare__two_studies__side_by_side_or_the_fields_that_differ(empty):
    client, store = empty
    factory.fill(store, "one", training_key="k1")
    factory.fill(store, "two", training_key="k2", study=factory.study_spec(seed=0, tolerance=0.05))
    factory.fill(store, "far", training_key="k3", study=factory.study_spec(training={"steps": 9}))
    page = settled(client, "/compare?a=one&b=two")
    assert "settings that differ: tolerance: 0.02 -> 0.05" in page.text
    assert "training.steps: 600 -> 9" in settled(client, "/compare?a=one&b=far").text
    assert "there is no study" in settled(client, "/compare?a=one&b=nope").text


def test__query__page_and_csv__the_rows_of_the_api_or_one_line_of_refusal(client):
    sql = {"sql": "SELECT code, mean FROM leaderboard ORDER BY place"}
    rows = client.post("/api/v1/query", json=sql).json()["rows"]
    page = Outline(client.get("/query", params=sql).text)
    assert len(page.rows()) >= len(rows) > 1
    assert all(row[0] in page.text for row in rows)
    text = client.get("/query.csv", params=sql).text
    assert text.splitlines() == ["code,mean", *(f"{code},{mean}" for code, mean in rows)]
    wrong = client.get("/query", params={"sql": "DELETE FROM trials"})
    assert wrong.status_code == 422
    assert "only reading is allowed" in Outline(wrong.text).text


def test__mixers__list_and_card__what_is_installed_with_its_settings(client):
    page = Outline(client.get("/mixers").text)
    kinds = [mixer["kind"] for mixer in client.get("/api/v1/mixers").json()]
    assert {f"/mixers/{kind}" for kind in kinds} <= {a["href"] for a in page.all("a")}
    assert "kernel_size" in Outline(client.get("/mixers/sepconv").text).text


def test__submit__same_text__stored_as_the_api_stores_it(client):
    draft = {"text": "encoder: {n_layers: 2}\n", "name": "made", "budget": "4"}
    assert client.post("/submit", json=draft).json() == {"page": "/studies/made"}
    found = client.get("/api/v1/studies/made").json()
    assert (found["budget"], found["spec"]["encoder"]["n_layers"]) == ("4", 2)
    assert client.post("/submit", json=draft | {"text": "seed: 5"}).status_code == 409
    again = Outline(client.get("/submit?from=made").text).text
    assert "n_layers: 2" in again


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        ({"text": "encoder:\n  n_layerz: 2"}, "line 2: encoder.n_layerz"),
        ({"text": "a: [1"}, "line"),
        ({"text": "- 1"}, "mapping of settings"),
        ({"text": "seed: 1", "name": "<b>"}, "name: it may hold letters"),
        ({"text": "seed: 1", "budget": "lots"}, "budget: "),
        ({"text": "task: {kind: mlm, data: {source: /etc/passwd}}"}, "may not be named"),
    ],
)
def test__submit_check__slip__named_with_its_place_and_nothing_stored(client, draft, said):
    found = client.post("/submit/check", json=draft).json()
    assert said in Outline(found["shown"]).text
    assert not found["valid"]
    assert client.get("/api/v1/studies").json()["total"] == 1


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"training": {"steps": "x"}}, "spec.training.steps"),
        (
            {"space": {"choices": ["attention", {"kind": "sepconv", "kernel_size": 0}]}},
            "spec.space.choices.1.sepconv.kernel_size",
        ),
        ({"task": {"kind": "mlm", "data": {"source": "/etc/passwd"}}}, "spec.task.data.source"),
        ({"encoder": {"n_layerz": 2}}, "spec.encoder.n_layerz"),
    ],
)
def test__submit_check__slip_in_a_field__named_by_its_path(client, spec, path):
    found = client.post("/submit/check", json={"text": "", "spec": spec}).json()
    assert [error["path"] for error in found["errors"]] == [path]
    assert not found["valid"]


def test__submit__form__has_a_field_for_every_setting_of_a_study(client):
    page = Outline(client.get("/submit").text)
    keys = {a["data-key"] for _, a in page.tags if "data-key" in a}
    sections = ("encoder", "space", "limits", "training", "strategy", "baselines")
    fields = [StudySpec, *(type(getattr(StudySpec(), name)) for name in sections)]
    assert {name for model in fields for name in model.model_fields} - keys == {"schema_version"}
    assert {"n_pairs", "mask_probability", "kernel_size", "surrogate_width"} <= keys


def test__errors__a_person__pages_with_a_way_on(client):
    missing = client.get("/studies/dmo")
    assert missing.status_code == 404
    assert "did you mean demo?" in Outline(missing.text).text
    assert client.get("/studies/demo/trials/999").status_code == 404
    assert client.get("/studies/demo/trials?sort=nope").status_code == 422
    assert client.get("/static/0/page.js").status_code == 404


def test__login__without_a_token__led_there_and_back(filled):
    make_token(filled, "read")
    with client_of(filled) as client:
        led = client.get("/studies/demo?x=1")
        assert (led.status_code, led.headers["location"]) == (
            303,
            "/login?next=%2Fstudies%2Fdemo%3Fx%3D1",
        )
        page = Outline(client.get(led.headers["location"]).text)
        assert {"data-next": "/studies/demo?x=1"}.items() <= page.all("form")[0].items()
        styles = next(a["href"] for a in page.all("link") if a["href"].endswith(".css"))
        assert client.get(styles).headers["cache-control"].endswith("immutable")


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "https://evil.example", ""])
def test__login__next_of_another_site__the_first_page(path):
    assert own_path(path) == "/studies"


@pytest.mark.parametrize("positions", ["learned", "none"])
def test__trial__readings_of_the_probe__every_name_is_explained(positions):
    encoder = encoder_of("average", positions=positions, d_model=16, max_seq_len=12)
    readings = probe(encoder, random_contexts(24, 12), VOCABULARY, seed=0).readings
    parts = {part for name in readings for part in name.split(".")}
    words = {"gap" if part.startswith("gap_") else part for part in parts}
    assert {word for word in words if f"`{word}`" not in PROBE_WORDS} == set()


def test__reader__pages__offer_nothing_that_changes(filled):
    token = make_token(filled, "read")
    with client_of(filled, token=token) as client:
        page = settled(client, "/studies/demo")
        assert not [b for b in page.all("button") if {"data-call", "data-budget"} & b.keys()]
        assert not page.all("dialog")
        assert client.get("/submit").status_code == 403


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("2026-11-28T11:59:59.5+00:00", "just now"),
        ("2026-11-28T11:58:59+00:00", "1 minute ago"),
        ("2026-11-28 09:00:00", "3 hours ago"),
        ("2026-11-20T12:00:00+00:00", "8 days ago"),
        ("2026-09-01T12:00:00+00:00", "2026-09-01"),
    ],
)
def test__ago__ages__in_words(then, said):
    from datetime import UTC, datetime

    assert ago(then, datetime(2026, 11, 28, 12, tzinfo=UTC)) == said


def test__list__addresses__keep_filters_and_turn_the_order():
    listed = List("/t", {"state": "failed", "q": ""}, "-number", page=2, total=101)
    assert listed.href(3) == "/t?state=failed&sort=-number&page=3"
    assert (listed.span, listed.last_page) == ("51 to 100", 3)
    column = listed.column("trial", "number")
    assert (column.href, column.sorted) == ("/t?state=failed&sort=number", "descending")
