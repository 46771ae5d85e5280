"""Studies and their results over HTTP, held against the store itself."""

import json
from pathlib import Path

import pytest
import store_factory
from hypothesis import given
from hypothesis import strategies as st
from served import API, client_of, make_token

from search.spec.study import StudySpec
from search.store.repo import Store
from service.listing import thinned

SPEC = {"encoder": {"d_model": 32, "n_layers": 2}, "space": {"choices": ["attention", "sepconv"]}}


def test__submit__the_same_twice__is_stored_once(filled: str) -> None:
    with client_of(filled) as client:
        body = {"name": "new", "spec": SPEC, "budget": "20"}
        first, second = (client.post(f"{API}/studies", json=body) for _ in range(2))
        other = client.post(f"{API}/studies", json=body | {"spec": {"encoder": {"n_layers": 3}}})
        nameless = client.post(f"{API}/studies", json={"spec": SPEC})
        assert client.get(first.headers["location"]).json()["name"] == "new"
    assert (first.status_code, second.status_code, other.status_code) == (201, 200, 409)
    assert first.json() == second.json()
    assert "encoder.n_layers: 2 -> 3" in other.json()["detail"]
    with Store.open(filled) as store:
        row = store.study("new")
        assert StudySpec.model_validate(row.spec) == StudySpec.model_validate(SPEC)
        assert row.budget == "20"
        assert nameless.json()["name"] == StudySpec.model_validate(SPEC).default_name
        assert len(store.studies()) == 3


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"name": "a", "spec": {"encoder": {"n_layerz": 2}}}, ["spec.encoder.n_layerz"]),
        ({"name": "a", "sepc": {}}, ["sepc"]),
        (
            {"spec": {"space": {"choices": [{"kind": "sepconv", "kernal_size": 7}]}}},
            ["spec.space.choices.0.sepconv.kernal_size"],
        ),
        ({"spec": {"space": {"choices": ["atention"]}}}, ["spec.space.choices.0"]),
        ({"spec": {"encoder": {"d_model": "64"}}}, ["spec.encoder.d_model"]),
        ({"spec": {}, "budget": "lots"}, ["budget"]),
        ({"name": "../a", "spec": {}}, ["name"]),
        (
            {"spec": {"training": {"steps": 0, "batch_size": 0}}},
            ["spec.training.steps", "spec.training.batch_size"],
        ),
    ],
)
def test__submit__wrong_field__is_422_with_its_path_and_stores_nothing(
    filled: str, body: dict[str, object], paths: list[str]
) -> None:
    with client_of(filled) as client:
        answer = client.post(f"{API}/studies", json=body)
        assert answer.status_code == 422
        assert [error["path"] for error in answer.json()["errors"]] == paths
        assert client.get(f"{API}/studies").json()["total"] == 1


@pytest.mark.parametrize(
    "task",
    [
        {"data": {"source": "/etc/passwd"}},
        {"data": {"source": "../up"}},
        {"data": {"source": "~/notes.txt"}},
        {"data": {"source": "notes"}},
        {"data": {"source": "{data}/../secret.txt"}},
        {"data": {"source": "{data}/link"}},
        {"tokenizer": "/etc"},
        {"data": {"text_column": "../x"}},
    ],
)
def test__submit__a_task_that_names_files_elsewhere__is_422(
    filled: str, tmp_path: Path, task: dict[str, object]
) -> None:
    data = tmp_path / "texts"
    data.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (data / "link").symlink_to(tmp_path / "secret.txt")
    text = json.dumps({"spec": {"task": {"kind": "mlm", **task}}}).replace("{data}", str(data))
    with client_of(filled, data=data) as client:
        headers = {"Content-Type": "application/json"}
        answer = client.post(f"{API}/studies", content=text, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"].startswith("spec.task.")


def test__submit__own_function__is_422(filled: str) -> None:
    task = {"kind": "objective", "name": "f", "source_sha256": "0" * 64}
    with client_of(filled) as client:
        assert client.post(f"{API}/studies", json={"spec": {"task": task}}).status_code == 422


def test__submit__text_below_the_data_folder__is_admitted(filled: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    spec = {"task": {"kind": "mlm", "data": {"source": str(tmp_path / "a.txt")}}}
    hub = {"task": {"kind": "mlm", "data": {"source": "owner/texts"}}}
    with client_of(filled, data=tmp_path) as client:
        assert client.post(f"{API}/studies/validate", json={"spec": spec}).status_code == 200
        assert client.post(f"{API}/studies/validate", json={"spec": hub}).status_code == 422
    with client_of(filled, hub=True) as client:
        assert client.post(f"{API}/studies/validate", json={"spec": hub}).status_code == 200


def test__steering__pause_resume_stop_budget_delete__is_what_the_store_has(filled: str) -> None:
    with (
        client_of(filled, token=make_token(filled, "admin")) as client,
        Store.open(filled) as store,
    ):
        client.post(f"{API}/studies", json={"name": "new", "spec": SPEC})
        for word, state in (("pause", "paused"), ("resume", "running"), ("stop", "stopped")):
            assert client.post(f"{API}/studies/new/{word}").json()["state"] == state
            assert store.study("new").state == state
        refused = client.post(f"{API}/studies/new/resume")
        assert (refused.status_code, store.study("new").state) == (409, "stopped")
        again = client.post(f"{API}/studies/new/resume", params={"stopped": True}).json()
        assert (again["before"], again["state"]) == ("stopped", "running")
        assert client.put(f"{API}/studies/new/budget", json={"budget": "2h"}).status_code == 200
        assert store.study("new").budget == "2h"
        study = store.study("demo")
        worker = store.register_worker()
        store_factory.reserve(store, study.id, worker)
        assert client.delete(f"{API}/studies/demo").status_code == 409
        assert client.delete(f"{API}/studies/new").status_code == 204
        assert client.get(f"{API}/studies/new").status_code == 404
        assert [row.name for row in store.studies()] == ["demo"]


def test__refusal__that_a_command_line_answers_with_an_option__names_none_over_http(
    filled: str,
) -> None:
    with client_of(filled) as client:
        client.post(f"{API}/studies", json={"name": "new", "spec": SPEC})
        other = client.post(f"{API}/studies", json={"name": "new", "spec": {"seed": 5}})
        client.post(f"{API}/studies/new/stop")
        stopped = client.post(f"{API}/studies/new/resume")
        absent = client.get(f"{API}/studies/nobody")
    for answer, status, way_out in (
        (other, 409, "give the changed one another name"),
        (stopped, 409, "(stopped=true)"),
        (absent, 404, "the list of studies names all"),
    ):
        detail = answer.json()["detail"]
        assert answer.status_code == status
        assert detail.endswith(way_out)
        assert "--" not in detail
        assert "search " not in detail


def test__lists__filtered_sorted_and_paged__are_the_rows_of_the_store(filled: str) -> None:
    with client_of(filled) as client, Store.open(filled) as store:
        rows = store.view("trials_flat", "demo")
        wanted = sorted(
            (row for row in rows if row["phase"] != "confirm"), key=lambda r: r["selection"]
        )
        pages = [
            client.get(
                f"{API}/studies/demo/trials",
                params={
                    "phase": ["baseline", "search"],
                    "sort": "selection",
                    "page": page,
                    "page_size": 3,
                },
            ).json()
            for page in (1, 2, 3)
        ]
        found = [item["trial"] for page in pages for item in page["items"]]
        assert found == [row["trial"] for row in wanted]
        assert {page["total"] for page in pages} == {len(wanted)}
        assert [len(page["items"]) for page in pages] == [3, 1, 0]
        leaders = client.get(f"{API}/studies/demo/leaderboard").json()["items"]
        assert [row["code"] for row in leaders] == [r["code"] for r in store.leaderboard("demo")]
        front = client.get(f"{API}/studies/demo/pareto").json()["rows"]
        assert {r["code"] for r in front} == {
            r["code"] for r in store.leaderboard("demo") if r["is_pareto"]
        }
        wrong = client.get(f"{API}/studies/demo/trials", params={"sort": "1;drop"})
        assert wrong.status_code == 422


def test__trial__its_parts__are_those_of_its_document(filled: str) -> None:
    with client_of(filled) as client, Store.open(filled) as store:
        document = json.loads(json.dumps(store.trial(1)))
        assert client.get(f"{API}/trials/1").json() == document
        assert client.get(f"{API}/studies/demo/trials/0").json() == document
        for part in ("blocks", "probes", "costs", "proof", "attempts"):
            assert client.get(f"{API}/trials/1/{part}").json() == document[part]
        curve = client.get(f"{API}/trials/1/points").json()
        assert curve["points"] == document["curves"]["selection.loss"]
        for path in ("trials/999", "studies/demo/trials/999", "trials/999/points"):
            assert client.get(f"{API}/{path}").status_code == 404


def test__report__of_a_study_with_an_odd_name__is_a_file(filled: str) -> None:
    with Store.open(filled) as store:
        store_factory.fill(store, 'b"; né', training_key="k2")
    with client_of(filled) as client:
        answer = client.get(f"{API}/studies/b%22;%20n%C3%A9/report", params={"format": "html"})
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == (
            "attachment; filename=\"b___n_.html\"; filename*=UTF-8''b%22%3B%20n%C3%A9.html"
        )
        assert answer.text.startswith("<!")


def test__answer__of_any_size__holds_the_front_and_counts_the_rest(filled: str) -> None:
    worse = [f"sepconv(kernel_size={size}), attention" for size in range(3, 13)]
    trained = ["attention*2", "sepconv*2", *worse]
    with Store.open(filled) as store:
        store_factory.fill(store, "wide", architectures=trained, training_key="k2")
    with client_of(filled) as client:
        report = client.get(f"{API}/studies/wide/report", params={"format": "json"})
        whole = report.json()["answer"]
        brief = client.get(f"{API}/studies/wide/answer").json()
        points = whole["pareto"]["points"]
        kept = [point for point in points if point["is_best"] or point["roles"]]
        assert (len(points), len(kept)) == (len(trained), 2)
        assert brief["pareto"] == whole["pareto"] | {"points": kept, "n_points": len(points)}
        assert brief | {"pareto": 0} == whole | {"pareto": 0}


def test__compare__studies_of_unlike_tasks__is_409_with_the_fields(filled: str) -> None:
    with Store.open(filled) as store:
        other = store_factory.study_spec(training={"steps": 50})
        store_factory.fill(store, "short", study=other, training_key="k3")
        store_factory.fill(store, "like", training_key="k4")
    with client_of(filled) as client:
        refused = client.get(f"{API}/studies/demo/compare/short")
        assert refused.status_code == 409
        assert "training.steps: 600 -> 50" in refused.json()["detail"]
        sides = client.get(f"{API}/studies/demo/compare/like").json()
        assert sides["studies"] == ["demo", "like"]
        assert (len(sides["shared"]), sides["n_shared"]) == (4, 4)


def test__C57__best_and_export_of_a_study_without_results__are_404(filled: str) -> None:
    with Store.open(filled) as store:
        study = store.ensure_study("bad", store_factory.study_spec(), store_factory.PLUGINS)
        claim = store_factory.claim_and_commit(
            store, study.id, store.register_worker(), "sepconv*2", training_key="k5"
        )
        store.fail(claim, store_factory.failure("ValueError: always"))
    with client_of(filled) as client:
        client.post(f"{API}/studies", json={"name": "new", "spec": SPEC})
        for name in ("new", "bad"):
            for path in ("best", "export?view=leaderboard", "compare/demo"):
                answer = client.get(f"{API}/studies/{name}/{path}")
                assert answer.status_code == 404, (name, path)
        assert client.get(f"{API}/studies/new/export").status_code == 404
        assert "ValueError: always" in client.get(f"{API}/studies/bad/export").text
        assert "ValueError: always" in client.get(f"{API}/studies/bad/report").text
        assert client.get(f"{API}/studies/new/trials").json()["total"] == 0
        assert client.get(f"{API}/studies/demo/best").json()["code"] == "SS"


points = st.lists(st.floats(-1e6, 1e6), max_size=300).map(lambda values: list(enumerate(values)))


@given(points, st.integers(4, 50))
def test__thinned__any_curve__keeps_ends_and_extremes_and_is_short(curve, most) -> None:
    kept = thinned(curve, most)
    assert len(kept) <= max(most, 0)
    assert kept == sorted(set(kept))
    assert set(kept) <= set(curve)
    if curve:
        assert (kept[0], kept[-1]) == (curve[0], curve[-1])
        values, shown = [v for _, v in curve], [v for _, v in kept]
        assert (min(shown), max(shown)) == (min(values), max(values))
