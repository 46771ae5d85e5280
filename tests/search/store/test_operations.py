import pytest
import store_factory

from search.errors import InputError, NothingThereError
from search.messages import Report
from search.rows import FINAL_STATES

WHOLE = 3 * 8_000_000 * 32 * 600  # training FLOPs that the factory reserves


@pytest.fixture
def study_id(store):
    return store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id


@pytest.fixture
def worker(store, study_id):
    return store.register_worker()


def claim_queued(store, study_id, worker):
    return store.reserve(study_id, worker, lambda counts: None)


def test__change_state__paused_study__hands_out_nothing_until_it_is_resumed(
    store, study_id, worker
):
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    change = store.change_state(study_id, "paused")
    assert (change.before, change.state, change.changed, change.running) == (
        *("running", "paused"),
        *(True, 1),
    )
    assert store.study("demo").reason == "by hand"
    store.release(claim, False, "paused")
    assert store.reserve(study_id, worker, lambda counts: "search") is None
    again = store.change_state(study_id, "paused")
    assert (again.changed, again.running, again.queued) == (False, 0, 1)
    resumed = store.change_state(study_id, "running")
    assert (resumed.before, resumed.state, resumed.changed) == ("paused", "running", True)
    assert store.study("demo").reason is None
    assert claim_queued(store, study_id, worker).trial_id == claim.trial_id


def test__change_state__stopped_study__ends_with_its_trials_until_it_is_reopened(
    store, study_id, worker
):
    failing = store_factory.claim_and_commit(store, study_id, worker, "average*2")
    in_hand = store_factory.claim_and_commit(store, study_id, worker, "sepconv*2")
    waiting = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    store.release(waiting, False, "preempted")
    proposed = store.reserve(study_id, worker, lambda counts: "search", resume=lambda counts: False)
    change = store.change_state(study_id, "stopped")
    assert (change.state, change.changed, change.running, change.queued) == ("stopped", True, 3, 0)
    for claim in (in_hand, proposed):
        store.release(claim, False, "the study was stopped")
    assert store.fail(failing, store_factory.failure(cause="lost")) == "failed"
    rows = store.rows("demo", curves=False)
    assert [row.state for row in rows] == ["failed", "stopped", "stopped"]
    assert {row.reason for row in rows if row.state == "stopped"} == {"the study was stopped"}
    kinds = [event["kind"] for event in store.events(limit=100, study=study_id)]
    assert kinds.count("trial_stopped") == 2
    assert store.change_state(study_id, "paused").state == "stopped"
    with pytest.raises(InputError, match="stopped for good") as refused:
        store.change_state(study_id, "running")
    assert refused.value.command == "search resume --stopped"
    assert store.study("demo").state == "stopped"
    assert store.change_state(study_id, "reopened").state == "running"
    assert claim_queued(store, study_id, worker) is None
    assert len(store.retry(study_id, states=["stopped"])) == 2
    assert claim_queued(store, study_id, worker).trial_id == in_hand.trial_id


def test__change_state__study_at_its_own_end__keeps_its_reason_unless_a_trial_waits(
    store, study_id, worker
):
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    store.fail(claim, store_factory.failure())
    store.set_study_state(study_id, "completed", "budget")
    for wish in ("paused", "stopped", "running"):
        change = store.change_state(study_id, wish)
        assert (change.changed, change.state) == (False, "completed")
    assert store.study("demo").reason == "budget"
    store.retry(study_id)
    assert (store.study("demo").state, store.study("demo").reason) == ("running", None)
    assert store.change_state(study_id, "paused").state == "paused"


@pytest.mark.parametrize("ended", ["failed", "diverged", "stopped"])
def test__retry__ended_trial__same_row_new_attempt_and_exact_flops(store, study_id, worker, ended):
    other = store_factory.claim_and_commit(store, study_id, worker, "sepconv*2")
    store.finish(other, store_factory.result(2.4))
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    before = store.counts("demo")
    if ended == "failed":
        store.fail(claim, store_factory.failure())
    else:
        store.report(claim, [Report(step=100, split="selection", metrics={"loss": 9.0})])
        reason = "loss is nan at step 150"
        store.finish(claim, store_factory.result(outcome=ended, reason=reason, steps=150))
        assert store.counts("demo").flops == before.flops - WHOLE * 3 // 4
    [retried] = store.retry(study_id, states=[ended])
    assert (retried.id, retried.before, retried.attempts) == (claim.trial_id, ended, 1)
    after = store.counts("demo")
    assert (after.by_phase, after.flops) == (before.by_phase, before.flops)
    row = store.rows("demo")[1]
    assert (row.state, row.error, row.steps, row.seconds) == ("queued", None, None, None)
    assert row.selection == {}
    second = claim_queued(store, study_id, worker)
    assert (second.trial_id, second.token) == (claim.trial_id, 2)
    assert store.finish(second, store_factory.result(2.2))
    document = store.trial(claim.trial_id)
    assert [attempt["outcome"] for attempt in document["attempts"]] == [ended, "completed"]
    assert document["evaluations"]["selection"]["loss"] == 2.2
    assert [line["mean"] for line in store.leaderboard("demo")] == [2.2, 2.4]
    assert store.counts("demo").started == 2


def test__retry__by_cause_and_by_number__only_those(store, study_id, worker):
    causes = ["out_of_memory", "error", "out_of_memory"]
    for seed, cause in enumerate(causes):
        claim = store_factory.claim_and_commit(
            store, study_id, worker, "attention*2", seed=seed, seed_index=seed
        )
        store.fail(claim, store_factory.failure(cause=cause))
    assert [one.number for one in store.retry(study_id, causes=["out_of_memory"])] == [0, 2]
    assert store.retry(study_id, causes=["hung"]) == []
    assert [one.number for one in store.retry(study_id, numbers=[1])] == [1]
    with pytest.raises(InputError, match="trial 1 of 'demo' is queued; only what is failed"):
        store.retry(study_id, numbers=[1])
    with pytest.raises(NothingThereError, match="no trial 7; it has trials 0 to 2"):
        store.retry(study_id, numbers=[7])
    assert not FINAL_STATES & {row.state for row in store.rows("demo")}


def test__retry__one_of_the_named_trials_does_not_fit__none_is_queued(store, study_id, worker):
    claims = [
        store_factory.claim_and_commit(store, study_id, worker, notation)
        for notation in ("attention*2", "sepconv*2")
    ]
    store.fail(claims[0], store_factory.failure())
    store.finish(claims[1], store_factory.result())
    with pytest.raises(InputError, match="trial 1 of 'demo' is completed"):
        store.retry(study_id, numbers=[0, 1])
    assert [row.state for row in store.rows("demo")] == ["failed", "completed"]
