"""Cases that the service must hold over HTTP, on both databases where the database matters."""

import json
import time
from collections.abc import Iterator

import pytest
import store_factory
from plugin_packages import lay_out, ok, run_python
from served import API, client_of
from sqlalchemy import text
from starlette.testclient import TestClient

from search.store.repo import Store

BAD = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
PLACES = (
    "/studies/demo",
    "/studies/demo/trials",
    "/studies/demo/best",
    "/studies/demo/answer",
    "/studies/demo/leaderboard",
    "/studies/demo/pareto",
    "/studies/demo/rows",
    "/studies/demo/export?format=jsonl",
    "/studies/demo/report?format=json",
    "/events?study=demo&limit=500",
)
PAGES = ("/studies", "/studies/demo", "/studies/demo/trials", "/studies/demo/leaderboard")


def refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


def strict(body: str) -> object:
    """Reads JSON, which has no word for what is not finite."""
    return json.loads(body, parse_constant=refuse)


@pytest.fixture
def odd(store: Store) -> Store:
    """A study with five normal trials, one each with a value that is not finite, one with none."""
    store_factory.fill(store, architectures=[f"sepconv(kernel_size={k})*2" for k in range(1, 6)])
    study, worker = store.study("demo"), store.register_worker()
    for n_layers, value in enumerate(BAD.values(), 3):
        claim = store_factory.claim_and_commit(store, study.id, worker, f"attention*{n_layers}")
        result = store_factory.result()
        evaluations = {"selection": {"loss": value, "accuracy": value}}
        store.finish(claim, result.model_copy(update={"evaluations": evaluations}))
    store_factory.claim_and_commit(store, study.id, worker, "average*2")
    with store.writing() as connection:  # as a program could that writes past the store
        connection.execute(
            text("UPDATE costs SET latency_s = :value WHERE trial_id = 2"), {"value": BAD["inf"]}
        )
    return store


def test__C52__values_that_are_not_finite__strict_json_everywhere_and_five_trials(
    odd: Store,
) -> None:
    url = odd.address.url.render_as_string(hide_password=False)
    with client_of(url) as client:
        for place in PLACES:
            answer = client.get(API + place)
            assert answer.status_code == 200, (place, answer.text)
            for line in answer.text.splitlines() if "jsonl" in place else [answer.text]:
                strict(line)
        states = [row["state"] for row in client.get(f"{API}/studies/demo/trials").json()["items"]]
        assert states == ["completed"] * 5 + ["diverged"] * 3 + ["running"]
        assert client.get(f"{API}/studies/demo/leaderboard").json()["total"] == 5
        for trial in range(1, 10):
            strict(client.get(f"{API}/trials/{trial}").text)
        sql = "SELECT number, selection, latency_s FROM trials_flat ORDER BY number"
        found = client.post(f"{API}/query", json={"sql": sql})
        assert [row[1] is None for row in strict(found.text)["rows"]] == [False] * 5 + [True] * 4
        for page in PAGES:
            settled(client, page)
        assert settled(client, "/studies/demo/trials").count('class="badge bad">diverged') == 3


def settled(client: TestClient, path: str) -> str:
    """A page whose answer is there."""
    while "data-pending" in (answer := client.get(path)).text:
        time.sleep(0.02)
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test__C52__such_a_value_in_a_request__is_refused_and_nothing_breaks(
    filled_service: TestClient, word: str
) -> None:
    body = f'{{"name": "new", "spec": {{"tolerance": {word}}}}}'
    headers = {"Content-Type": "application/json"}
    answer = filled_service.post(f"{API}/studies", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    strict(answer.text)
    assert filled_service.get(f"{API}/studies/new").status_code == 404


@pytest.fixture
def filled_service(tmp_path) -> Iterator[TestClient]:
    with client_of(f"sqlite:///{tmp_path}/search.db") as client:
        yield client


SCHEMA = """
import json
from fastapi.testclient import TestClient
from service.app import create_app
from service.settings import ServiceSettings
app = create_app(ServiceSettings(store="sqlite:///search.db"))
with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50000)) as client:
    api = "/api/v1"
    listed = {one["kind"]: one["broken"] for one in client.get(api + "/mixers").json()}
    schema = json.dumps(client.get(api + "/schemas/study").json())
    def submitted(mixer):
        study = {"spec": {"space": {"choices": ["attention", mixer]}}}
        return client.post(api + "/studies", json=study)
    statuses = [submitted(kind).status_code for kind in listed if listed[kind] is not None]
    own = submitted({"kind": "good-mixers.taps", "delays": [2, 5], "gain": 0.25})
    stored = client.get(own.headers["location"]).json()["spec"]["space"]["choices"]
    print(json.dumps([listed, schema, statuses, stored,
                      client.get("/submit").status_code, client.get("/mixers").text]))
"""


@pytest.fixture(scope="module")
def with_plugins(tmp_path_factory: pytest.TempPathFactory):
    """What a service says beside which broken packages and a good one are installed."""
    folder = tmp_path_factory.mktemp("plugins")
    sites = [lay_out(name, folder / name) for name in ("broken", "good")]
    done = run_python(SCHEMA, *sites, cwd=folder, options=("-W", "ignore"))
    return json.loads(ok(done).splitlines()[-1])


def test__C59__service_with_broken_plugins__lists_them_and_all_else_works(with_plugins) -> None:
    listed, schema, statuses, _, form, page = with_plugins
    broken = {kind: reason for kind, reason in listed.items() if reason is not None}
    assert len(broken) >= 4
    assert all(kind in page and kind not in schema for kind in broken)
    assert set(statuses) == {422}
    assert form == 200
    assert listed["attention"] is None


def test__C27__service_with_a_plugin__its_schema_is_served_and_its_config_is_kept(
    with_plugins,
) -> None:
    listed, schema, _, stored, _, page = with_plugins
    assert listed["good-mixers.taps"] is None
    assert "good-mixers.taps" in schema
    assert {"delays", "gain"} <= set(json.loads(schema)["$defs"]["TapsConfig"]["properties"])
    assert stored[1] == {"kind": "good-mixers.taps", "delays": [2, 5], "gain": 0.25}
    assert "good-mixers.taps" in page
