"""A diverged trial is never best, whatever it returns, on either database."""

import json

import pytest
import store_factory

from search.messages import Report, TrialResult

BAD = [float("nan"), float("inf"), float("-inf")]


def raw_result(value, **changes):
    """A result that got past the messages' own check, as another program could make it."""
    good = store_factory.result()
    evaluations = {"selection": {"loss": value, "accuracy": 0.5}}
    return good.model_copy(update={"evaluations": evaluations} | changes)


@pytest.fixture(params=["minimize", "maximize"])
def study(request, store):
    objective = "loss" if request.param == "minimize" else "accuracy"
    other = "accuracy" if objective == "loss" else "loss"
    spec = store_factory.study_spec(objectives=[objective], metrics=[other])
    assert spec.direction == request.param
    store_factory.fill(store, study=spec)
    return store.study("demo")


@pytest.mark.parametrize("value", BAD, ids=str)
def test__C41__result_not_finite__ends_as_diverged_and_is_never_best(store, study, value):
    before = store.leaderboard("demo")
    worker = store.register_worker()
    claim = store_factory.claim_and_commit(store, study.id, worker, "attention*3")
    evaluations = {"selection": {"loss": value, "accuracy": value}}
    assert store.finish(claim, raw_result(value, evaluations=evaluations))
    row = store.rows("demo")[-1]
    assert row.state == "diverged"
    assert str(value) in row.reason
    assert row.selection == {}
    assert store.leaderboard("demo") == before
    assert before[0]["place"] == 1
    found = store.query(
        "SELECT state, selection FROM trials_flat WHERE study = 'demo' ORDER BY number"
    )
    assert found.rows[-1] == ("diverged", None)
    for document in (store.trial(row.id), store.events(), before):
        json.dumps(document, allow_nan=False)


@pytest.mark.parametrize("value", BAD, ids=str)
def test__C41__report_not_finite__ends_as_diverged_even_if_the_end_looks_well(store, study, value):
    worker = store.register_worker()
    claim = store_factory.claim_and_commit(store, study.id, worker, "attention*3")
    good = Report(step=1, split="selection", metrics={"loss": 2.0})
    bad = Report.model_construct(step=2, split="selection", metrics={"loss": value})
    later = Report(step=3, split="selection", metrics={"loss": 1.5})
    for report in (good, bad, later):
        assert store.report(claim, [report])
    assert store.finish(claim, store_factory.result(0.1))
    row = store.rows("demo")[-1]
    assert row.state == "diverged"
    assert row.reason == f"loss is {value} at step 2"
    curve = ((1, 2.0), (3, 1.5)) if study.objective == "loss" else ()
    assert row.curve == curve
    assert all(place["arch_id"] != row.arch_id for place in store.leaderboard("demo"))


def test__C41__said_to_be_diverged__keeps_its_curve_and_no_value(store, study):
    worker = store.register_worker()
    claim = store_factory.claim_and_commit(store, study.id, worker, "attention*3")
    store.report(claim, store_factory.reports(9.0))
    result = store_factory.result(9.0, outcome="diverged", reason="loss is nan at step 400")
    assert store.finish(claim, result)
    row = store.rows("demo")[-1]
    assert (row.state, row.reason, row.selection) == ("diverged", "loss is nan at step 400", {})
    assert len(row.curve) == 3


def test__C41__environment_with_odd_text__reads_the_same(store, study):
    worker = store.register_worker()
    claim = store_factory.claim_and_commit(store, study.id, worker, "attention*3")
    facts = {"note": 'NaN, Infinity, "quoted", null, \\u0041'}
    store.finish(claim, store_factory.result().model_copy(update={"environment": facts}))
    assert store.trial(claim.trial_id)["environment"] == facts


def test__C41__messages__refuse_what_is_not_finite_themselves():
    document = store_factory.result().model_dump()
    document["evaluations"]["selection"]["loss"] = float("nan")
    with pytest.raises(ValueError, match="finite"):
        TrialResult.model_validate(document)


def test__C41__late_result_not_finite__kept_beside_the_outcome_without_an_exception(store, study):
    worker = store.register_worker()
    claim = store_factory.claim_and_commit(store, study.id, worker, "attention*3")
    store.release(claim, False, "SIGTERM")
    again = store.reserve(study.id, worker, lambda counts: None)
    assert not store.finish(claim, raw_result(float("inf")))
    assert store.finish(again, store_factory.result(2.0))
    attempts = store.trial(claim.trial_id)["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["preempted", "completed"]
    assert attempts[0]["result"]["outcome"] == "diverged"
