import dataclasses
import json

import pytest
import store_factory
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from search.messages import Progress, Report
from search.rows import DocumentSums
from search.store.measurements import Evaluation, MetricPoint, Probe


@pytest.fixture
def study_id(store):
    return store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id


@pytest.fixture
def claim(store, study_id):
    return store_factory.claim_and_commit(store, study_id, store.register_worker(), "attention*2")


def test__finish__everything__reads_back(store, claim):
    assert store.report(claim, store_factory.reports(2.0))
    given = store_factory.result(2.0, splits=("selection", "test"))
    assert store.finish(claim, given)
    (row,) = store.rows("demo")
    assert (row.state, row.reason) == ("completed", "trained to the end")
    assert row.selection == given.evaluations["selection"]
    assert row.test == given.evaluations["test"]
    assert (row.params, row.flops) == (given.costs.params, given.costs.flops)
    assert row.step_s == given.costs.step_s.median
    assert row.latency_s == given.costs.latency_s.median
    assert dataclasses.asdict(row.latency) == given.costs.latency_s.model_dump()
    assert row.peak_memory == given.costs.peak_memory_bytes
    assert row.probe == 1e-2
    assert (row.steps, row.seconds) == (600, 40.0)
    assert row.curve == ((200, 2.4), (400, 2.2), (600, 2.0))
    document = store.trial(row.id)
    assert document["evaluations"] == given.evaluations
    assert document["probes"] == {probe.when: probe.readings for probe in given.probes}
    assert document["proof"] == {"sha256": "0" * 64, "text": "proof", "layers": []}
    assert document["environment"] == given.environment
    assert document["costs"]["latency_s_high"] == given.costs.latency_s.high
    assert document["costs"]["device"] == "cpu"
    assert document["plugins"]["sepconv"] == ["mixsearch", "0.1.0"]
    assert [attempt["step"] for attempt in document["attempts"]] == [600]
    json.dumps(document, allow_nan=False)
    json.dumps(store.leaderboard("demo"), allow_nan=False)
    json.dumps(store.events(), allow_nan=False)


def test__finish__sums_by_document__read_where_asked_for(store, study_id, claim):
    sums = DocumentSums((3, 2), (6.123456789012345, 4.5))
    given = store_factory.result(2.0, splits=("selection", "test"))
    store.finish(claim, given.model_copy(update={"documents": {"test": sums}}))
    (row,) = store.rows("demo", documents=True)
    assert row.documents == {"test": DocumentSums((3, 2), (6.12345679, 4.5))}
    assert store.rows("demo")[0].documents == {}
    other = store.ensure_study("other", store_factory.study_spec(seed=1), store_factory.PLUGINS)
    taken = store_factory.reserve(store, other.id, store.register_worker())
    outcome = store.commit(
        taken,
        store_factory.encoder_spec("attention*2"),
        seed=0,
        seed_index=0,
        training_key=store_factory.TRAINING_KEY,
    )
    assert outcome == "reused"
    (copy,) = store.rows("other", documents=True)
    assert copy.documents == row.documents


def test__finish__costs_not_measured__stay_empty(store, claim):
    given = store_factory.result()
    costs = given.costs.model_copy(update={"step_s": None, "latency_s": None})
    store.finish(claim, given.model_copy(update={"costs": costs, "proof": None}))
    (row,) = store.rows("demo")
    assert (row.step_s, row.latency_s, row.params) == (None, None, 50_000)
    assert row.latency is None
    assert store.trial(row.id)["proof"] is None


def test__finish__stopped__keeps_its_values_but_not_in_the_leaderboard(store, claim):
    store.finish(claim, store_factory.result(2.0, outcome="stopped", reason="time budget"))
    (row,) = store.rows("demo")
    assert (row.state, row.reason) == ("stopped", "time budget")
    assert row.selection["loss"] == 2.0
    assert store.leaderboard("demo") == []


def test__finish__same_environment__stored_once(store):
    store_factory.fill(store, "other")
    assert store.query("SELECT COUNT(*) FROM environments").rows == [(1,)]


def test__fail__cause_and_first_line__are_shown(store, claim):
    failure = store_factory.failure("RuntimeError: boom", "out_of_memory")
    assert store.fail(claim, failure) == "failed"
    (row,) = store.rows("demo")
    assert (row.state, row.error, row.cause) == ("failed", "RuntimeError: boom", "out_of_memory")
    assert row.reason == "out of memory: RuntimeError: boom"
    (attempt,) = store.trial(row.id)["attempts"]
    assert (attempt["outcome"], attempt["cause"]) == ("failed", "out_of_memory")
    assert attempt["traceback"].startswith("Traceback")
    assert not store.finish(claim, store_factory.result())
    assert store.rows("demo")[0].state == "failed"


def test__report__step_made_again_by_a_new_attempt__overwrites(store, study_id, claim):
    store.report(claim, [Report(step=100, split="selection", metrics={"loss": 3.0})])
    store.release(claim, False, "SIGTERM")
    again = store.reserve(study_id, store.register_worker(), lambda counts: None)
    store.report(again, [Progress(step=50, steps=600)])
    store.report(again, [Report(step=100, split="selection", metrics={"loss": 2.5})])
    assert store.rows("demo")[0].curve == ((100, 2.5),)
    attempts = store.trial(claim.trial_id)["attempts"]
    assert [(attempt["step"], attempt["n_steps"]) for attempt in attempts] == [
        (100, None),
        (100, 600),
    ]


def test__report__nothing__asks_for_the_lease_alone(store, claim):
    assert store.report(claim, [])
    store.release(claim, False, "SIGTERM")
    assert not store.report(claim, [])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("model", "row"),
    [
        (Evaluation, {"split": "test", "metric": "loss"}),
        (MetricPoint, {"split": "train", "metric": "loss", "step": 1}),
        (Probe, {"moment": "init", "name": "p"}),
    ],
)
def test__tables__non_finite_written_past_the_store__refused_by_the_database(
    store, claim, model, row, value
):
    statement = insert(model).values(trial_id=claim.trial_id, value=value, **row)
    if model is Probe and value != value and store.address.is_sqlite:
        # SQLite makes NULL of a NaN, which is what a reading without a value is.
        with store.engine.begin() as connection:
            connection.execute(statement)
        assert store.query("SELECT value FROM probes").rows == [(None,)]
        return
    with pytest.raises(IntegrityError), store.engine.begin() as connection:
        connection.execute(statement)


def test__rows__two_mixers_of_a_kind__distinct_codes_and_the_same_objects_again(store):
    worker = store.register_worker()
    study = store_factory.study_spec(space={"choices": ["attention", "attention(rotary=true)"]})
    study_id = store.ensure_study("demo", study, store_factory.PLUGINS).id
    for notation in ("attention*2", "attention(rotary=true)*2"):
        claim = store_factory.claim_and_commit(store, study_id, worker, notation, study=study)
        assert store.finish(claim, store_factory.result())
    before = store.rows("demo", curves=False)
    assert [row.code for row in before] == ["AA", "aa"]
    claim = store_factory.claim_and_commit(
        store, study_id, worker, "attention, attention(rotary=true)", study=study
    )
    after = store.rows("demo", curves=False)
    assert [row.code for row in after] == ["AA", "aa", "Aa"]
    assert all(new is old for new, old in zip(after, before, strict=False))
    assert [row.code for row in store.rows("demo")] == ["AA", "aa", "Aa"]
