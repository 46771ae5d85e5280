"""Lists and small routes, on both databases, held against the store and the library."""

import json

import store_factory
from served import API, client_of

from mixers import available
from search.spec.study import StudySpec
from search.store.repo import Store
from service.routes.mixers import MEASURING
from service.routes.studies import PLANNING


def test__lists__on_both_databases__are_what_the_store_has(ready_url: str) -> None:
    with Store.open(ready_url) as store:
        store_factory.fill(store, "first")
        study = store.ensure_study("Second", store_factory.study_spec(), store_factory.PLUGINS)
        worker = store.register_worker(devices=("cpu",), slots=2)
        store.close_worker(store.register_worker())
        claim = store_factory.reserve(store, study.id, worker)
        with client_of(ready_url) as client:

            def get(path: str, **query: object):
                return client.get(f"{API}/{path}", params=query).json()

            names = [item["name"] for item in get("studies", sort="created")["items"]]
            assert names == ["first", "Second"]
            assert [item["name"] for item in get("studies", q="SEC")["items"]] == ["Second"]
            assert get("studies", q="100%")["total"] == get("studies", q="_")["total"] == 0
            assert get("studies", sort="-trials")["items"][0]["name"] == "first"
            assert get("studies", state="paused")["total"] == 0
            assert get(f"studies/{study.id}")["states"] == {"proposed": 1}
            front = [row["code"] for row in get("studies/first/pareto")["rows"]]
            leaders = store.leaderboard("first")
            assert front == [row["code"] for row in leaders if row["is_pareto"]]
            effects = get("studies/first/layer-effects")["rows"]
            assert effects == json.loads(json.dumps(store.view("layer_effects", "first")))
            [alive] = get("workers", alive=True)["items"]
            assert (alive["id"], alive["slots"], alive["trials"]) == (worker, 2, [claim.trial_id])
            assert get("workers")["total"] == 3
            # What has no value comes last, whichever way the rest is sorted.
            for sort in ("selection", "-selection"):
                assert get("studies/Second/trials", sort=sort)["items"][-1]["selection"] is None


def test__mixers__listed_and_shown__are_those_that_are_installed(filled: str) -> None:
    with client_of(filled) as client:
        listed = client.get(f"{API}/mixers").json()
        assert [row["kind"] for row in listed] == [info.kind for info in available().values()]
        shown = client.get(f"{API}/mixers/sepconv").json()
        assert "kernel_size" in shown["json_schema"]["properties"]
        assert client.get(f"{API}/mixers/sepcnv").status_code == 404
        schema = client.get(f"{API}/schemas/study").json()
        assert schema == json.loads(json.dumps(StudySpec.model_json_schema()))


def test__costly_routes__while_one_is_at_work__are_429(filled: str) -> None:
    plan = {"spec": {"encoder": {"n_layers": 1}}, "budget": "20"}
    with client_of(filled) as client, MEASURING, PLANNING:
        assert client.get(f"{API}/mixers/average/card").status_code == 429
        assert client.post(f"{API}/studies/plan", json=plan).status_code == 429


def test__ready__store_that_cannot_be_read__is_503_while_health_stays(
    filled: str, tmp_path
) -> None:
    with client_of(filled) as client:
        assert client.get(f"{API}/ready").json()["status"] == "ok"
        client.app.state.store.close()
        for file in tmp_path.glob("filled.db*"):
            file.unlink()
        (tmp_path / "filled.db").write_text("no database")
        answer = client.get(f"{API}/ready")
        assert (answer.status_code, answer.json()["status"]) == (503, 503)
        assert "retry-after" in answer.headers
        assert client.get(f"{API}/health").status_code == 200


def test__parameter__that_a_route_does_not_have__is_422_with_its_name(filled: str) -> None:
    with client_of(filled) as client:
        answer = client.get(f"{API}/studies/demo/trials", params={"pagesize": 3})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"] == "query.pagesize"
        assert "page_size" in answer.json()["errors"][0]["message"]
