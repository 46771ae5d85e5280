"""Claims and leases. Time is moved by rewriting what the database remembers, never by sleeping."""

from datetime import UTC, datetime, timedelta

import pytest
import store_factory
from sqlalchemy import select, update
from told_time import tell_time

from search.errors import InputError, NothingThereError, StoreError
from search.store.retries import MOST_ATTEMPTS
from search.store.routes import route_document
from search.store.tables import Attempt, Study, Trial, Worker


@pytest.fixture
def study_id(store):
    return store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id


@pytest.fixture
def worker(store):
    return store.register_worker(devices=("cpu",))


@pytest.fixture
def frozen(store):
    """The database's clock stands still, so that spans of time are exact."""
    now = datetime.now(UTC).replace(microsecond=0)
    tell_time(store.engine, lambda: now)


def let_pass(store, seconds):
    """Everything happened so much earlier, save signs of life: a process is as old as it is."""
    back = timedelta(seconds=seconds)
    with store.writing() as connection:
        for row in connection.execute(select(Attempt)).all():
            connection.execute(
                update(Attempt)
                .where(Attempt.trial_id == row.trial_id, Attempt.number == row.number)
                .values(
                    started_at=row.started_at - back,
                    lease_expires_at=row.lease_expires_at - back,
                    ended_at=row.ended_at and row.ended_at - back,
                )
            )
        for row in connection.execute(select(Study).where(Study.busy_since.is_not(None))).all():
            connection.execute(
                update(Study).where(Study.id == row.id).values(busy_since=row.busy_since - back)
            )


def commit(store, claim, notation="attention*2", **options):
    arguments = {"seed": 0, "seed_index": 0, "training_key": "k0"} | options
    return store.commit(claim, store_factory.encoder_spec(notation), **arguments)


def counts_of(store, study_id, worker):
    seen = []
    assert store.reserve(study_id, worker, seen.append) is None
    return seen[0]


def states(store):
    return [row.state for row in store.rows("demo")]


def test__reserve__in_turn__numbers_rise_from_zero(store, study_id, worker):
    claims = [store_factory.reserve(store, study_id, worker) for _ in range(3)]
    assert [claim.number for claim in claims] == [0, 1, 2]
    assert all(claim.spec is None and claim.token == 1 for claim in claims)
    assert states(store) == ["proposed"] * 3


def test__reserve__counts__hold_every_row_whatever_its_outcome(store, study_id, worker):
    flops = [10, 20, 30]
    claims = []
    for phase, notation, amount in zip(
        ("baseline", "search", "search"),
        ("attention*2", "sepconv*2", "sepconv, attention"),
        flops,
        strict=True,
    ):
        claim = store_factory.reserve(store, study_id, worker, phase)
        commit(store, claim, notation, flops=amount)
        claims.append(claim)
    store.fail(claims[0], store_factory.failure())
    spent = store_factory.result(steps=10, flops=7)
    store.finish(claims[1], spent)
    counts = counts_of(store, study_id, worker)
    assert counts.by_phase == {"baseline": 1, "search": 2}
    assert counts.started == 3
    # Reserved stays charged after a failure; a result is charged what it spent.
    assert counts.flops == 10 + 3 * 7 * 320 + 30


def test__reserve__budget_used_up__takes_nothing(store, study_id, worker):
    assert store.reserve(study_id, worker, lambda counts: None) is None
    assert store.rows("demo") == []
    assert store.study("demo").n_running == 0


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test__reserve__study_paused_or_stopped__takes_nothing(store, study_id, worker, state):
    store.set_study_state(study_id, state, "by hand")
    asked = []
    assert store.reserve(study_id, worker, lambda counts: asked.append(counts)) is None
    assert asked == []
    store.set_study_state(study_id, "running", None)
    assert store.reserve(study_id, worker, lambda counts: "search") is not None


def test__reserve__completed_study_with_more_budget__runs_again(store, study_id, worker):
    store.set_study_state(study_id, "completed", "budget")
    store_factory.reserve(store, study_id, worker)
    assert store.study("demo").state == "running"
    assert store.study("demo").reason is None


def test__reserve__unknown_study__nothing_there(store, worker):
    with pytest.raises(NothingThereError):
        store.reserve(77, worker, lambda counts: "search")


def test__commit__same_architecture_key_and_seed__duplicate_may_ask_again(store, study_id, worker):
    first, second = (store_factory.reserve(store, study_id, worker) for _ in range(2))
    assert commit(store, first) == "running"
    assert commit(store, second) == "duplicate"
    assert states(store) == ["running", "proposed"]
    assert commit(store, second, "sepconv*2") == "running"
    third = store_factory.reserve(store, study_id, worker)
    assert commit(store, third, seed=1, seed_index=1) == "running"
    fourth = store_factory.reserve(store, study_id, worker)
    assert commit(store, fourth, training_key="k1") == "running"


def test__commit__row__holds_what_was_committed(store, study_id, worker):
    claim = store_factory.reserve(store, study_id, worker, "baseline")
    spec = store_factory.encoder_spec("sepconv, attention(rotary=true)")
    outcome = store.commit(
        claim,
        spec,
        seed=5,
        seed_index=2,
        training_key="k",
        role="mixed",
        params={"layer_0": "sepconv"},
        attrs={"nsga2:generation": 3, "note": [1, {"a": None}]},
        study_attrs={"cma": [0.5]},
        flops=123,
    )
    assert outcome == "running"
    (row,) = store.rows("demo")
    assert row.arch_id == spec.arch_id
    assert row.mixers == ("sepconv", "attention(rotary=true)")
    assert (row.code, row.notation, row.n_layers) == (spec.code, spec.notation, 2)
    assert (row.seed, row.seed_index, row.role, row.phase) == (5, 2, "mixed", "baseline")
    assert row.params_json == {"layer_0": "sepconv"}
    assert row.sampler_attrs == {"nsga2:generation": 3, "note": [1, {"a": None}]}
    assert store.study("demo").attrs == {"cma": [0.5]}
    document = store.trial(row.id)
    assert type(spec).model_validate(document["spec"]) == spec
    assert [block["kind"] for block in document["blocks"]] == ["sepconv", "attention"]
    assert document["blocks"][1]["config"]["rotary"] is True
    assert document["training_flops"] == 123
    # Found before training, from the spec: attention stands in the second layer.
    assert row.route == document["route"] == route_document(spec)
    assert row.route["full_after"] == 2


def test__commit__notes_about_the_study__add_up_whoever_wrote_them(store, study_id, worker):
    first, second = (store_factory.reserve(store, study_id, worker) for _ in range(2))
    commit(store, first, study_attrs={"generation": [1], "data": "a"})
    commit(store, second, "sepconv*2", study_attrs={"generation": [1, 2], "other": {}})
    assert store.study("demo").attrs == {"generation": [1, 2], "data": "a", "other": {}}


def test__commit__flops_of_two_claims_at_once__never_exceed_the_limit(store, study_id, worker):
    first, second = (store_factory.reserve(store, study_id, worker) for _ in range(2))
    assert commit(store, first, flops=6, most_flops=10.0) == "running"
    assert commit(store, second, "sepconv*2", flops=5, most_flops=10.0) == "no room"
    assert states(store) == ["running", "proposed"]
    assert commit(store, second, "sepconv*2", flops=4, most_flops=10.0) == "running"


def test__commit__flops_beyond_64_bits__are_counted_and_kept_within_the_limit(
    store, study_id, worker
):
    # A float holds them, too. The third is an integer on SQLite, and so would a sum of integers be.
    for k, flops in enumerate((3 * 2**64, 2**66, 2**62, 2**64)):
        claim = store_factory.reserve(store, study_id, worker)
        outcome = commit(store, claim, flops=flops, most_flops=2.0**67, seed=k, seed_index=k)
        assert outcome == ("no room" if k == 3 else "running")
    for row, flops in zip(store.rows("demo"), (3 * 2**64, 2**66, 2**62), strict=False):
        assert store.trial(row.id)["training_flops"] == flops
    assert counts_of(store, study_id, worker).flops == 7 * 2**64 + 2**62


@pytest.mark.parametrize("field", ["params", "attrs", "study_attrs"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test__commit__non_finite_number__refused_with_its_place(store, study_id, worker, field, value):
    claim = store_factory.reserve(store, study_id, worker)
    with pytest.raises(InputError, match=rf"{field}\.a\.1 is {value}"):
        commit(store, claim, **{field: {"a": [1.0, value]}})
    assert states(store) == ["proposed"]


def test__commit__trained_in_another_study__reused_at_no_cost(store, study_id, worker):
    other = store_factory.fill(store, "other")
    assert other != study_id
    claim = store_factory.reserve(store, study_id, worker)
    key = store_factory.TRAINING_KEY
    assert commit(store, claim, training_key=key, flops=10**12) == "reused"
    (row,) = store.rows("demo")
    source = next(r for r in store.rows("other") if r.arch_id == row.arch_id)
    assert row.reused_from == source.id
    assert (row.state, row.seconds) == ("completed", 0.0)
    assert (row.selection, row.curve, row.probe) == (source.selection, source.curve, source.probe)
    assert (row.params, row.latency_s) == (source.params, source.latency_s)
    assert store.trial(row.id)["proof"] == store.trial(source.id)["proof"]
    assert store.leaderboard("demo")[0]["mean"] == source.selection["loss"]
    counts = counts_of(store, study_id, worker)
    assert (counts.started, counts.flops) == (1, 0)
    assert store.study("demo").n_running == 0


@pytest.mark.parametrize(
    "options",
    [{"training_key": "k1"}, {"seed": 1}, {"splits": ("selection", "test")}],
    ids=["other key", "other seed", "not read on test"],
)
def test__commit__not_the_same_training__is_trained(store, study_id, worker, options):
    store_factory.fill(store, "other")
    claim = store_factory.reserve(store, study_id, worker)
    arguments = {"training_key": store_factory.TRAINING_KEY} | options
    assert commit(store, claim, **arguments) == "running"


def test__release__reservation__is_gone_and_frees_its_number(store, study_id, worker):
    store_factory.reserve(store, study_id, worker)
    claim = store_factory.reserve(store, study_id, worker)
    store.release(claim, True, "space used up")
    assert states(store) == ["proposed"]
    again = store_factory.reserve(store, study_id, worker)
    assert again.number == claim.number
    assert again.trial_id > claim.trial_id  # an old token can never meet a new trial
    store.release(claim, True, "a second time")
    assert states(store) == ["proposed"] * 2


@pytest.mark.parametrize("returned", [True, False])
def test__release__committed_trial__is_queued_and_claimed_first(store, study_id, worker, returned):
    claim = store_factory.reserve(store, study_id, worker, "baseline")
    commit(store, claim, "sepconv*2", seed=4, role="all-sepconv")
    store.release(claim, returned, "Ctrl-C")
    (row,) = store.rows("demo")
    assert (row.state, row.reason) == ("queued", "Ctrl-C")
    assert counts_of_queued(store, study_id, worker) == 1

    again = store.reserve(study_id, worker, lambda counts: "search")
    assert again.trial_id == claim.trial_id
    assert (again.token, again.phase, again.role, again.seed) == (2, "baseline", "all-sepconv", 4)
    spec = store_factory.encoder_spec("sepconv*2")
    assert type(spec).model_validate(again.spec) == spec
    assert store.finish(again, store_factory.result())
    attempts = store.trial(claim.trial_id)["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["preempted", "completed"]


def counts_of_queued(store, study_id, worker):
    seen = []
    assert store.reserve(study_id, worker, seen.append, lambda counts: False) is None
    return seen[0].started


def test__heartbeat__keeps_a_lease_that_would_have_run_out(store, study_id, worker):
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    let_pass(store, 80)
    assert store.heartbeat(claim)
    let_pass(store, 80)
    assert store.reap() == 0
    let_pass(store, 20)
    assert store.reap() == 1
    assert not store.heartbeat(claim)


def test__reap__worker_lost__trial_is_queued_and_the_old_worker_fenced_off(store, study_id, worker):
    old = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    let_pass(store, 91)
    second = store.register_worker()
    new = store.reserve(study_id, second, lambda counts: None)
    assert (new.trial_id, new.token) == (old.trial_id, 2)

    late = store_factory.result(1.0)
    assert not store.heartbeat(old)
    assert not store.report(old, store_factory.reports(1.0))
    assert store.fail(old, store_factory.failure()) == "lost"
    store.release(old, False, "late")
    assert not store.finish(old, late)
    assert states(store) == ["running"]
    assert store.finish(new, store_factory.result(2.0))

    (row,) = store.rows("demo")
    assert row.selection["loss"] == 2.0
    attempts = store.trial(row.id)["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["lost", "completed"]
    assert attempts[0]["result"]["evaluations"]["selection"]["loss"] == 1.0


def test__finish__sent_again_since_the_answer_was_lost__changes_nothing(store, study_id, worker):
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    assert store.finish(claim, store_factory.result(2.0))
    before, events = store.trial(claim.trial_id), store.events()
    assert store.finish(claim, store_factory.result(2.0))
    assert (store.trial(claim.trial_id), store.events()) == (before, events)


def test__finish__lease_ran_out_but_nobody_took_over__counts(store, study_id, worker):
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    let_pass(store, 1000)
    assert store.finish(claim, store_factory.result())
    assert states(store) == ["completed"]


def test__reap__reservation__returns_to_the_budget(store, study_id, worker):
    claim = store_factory.reserve(store, study_id, worker)
    let_pass(store, 91)
    assert store.reap() == 1
    assert store.rows("demo") == []
    assert commit(store, claim) == "lost"
    assert store_factory.reserve(store, study_id, worker).number == claim.number


def test__reap__lost_again_and_again__fails_in_the_end(store, study_id, worker):
    store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    for _ in range(MOST_ATTEMPTS["lost"] - 1):
        let_pass(store, 91)
        assert store.reserve(study_id, worker, lambda counts: None) is not None
    let_pass(store, 91)
    assert store.reserve(study_id, worker, lambda counts: None) is None
    (row,) = store.rows("demo")
    assert (row.state, row.cause) == ("failed", "lost")
    assert row.error == (
        "the worker gave no sign of life until its lease ran out "
        f"({MOST_ATTEMPTS['lost']} attempts ended so)"
    )


@pytest.mark.parametrize("cause", MOST_ATTEMPTS)
def test__fail__again_and_again__queued_until_the_limit_of_its_cause(
    store, study_id, worker, cause
):
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    # Attempts that ended for another reason take nothing from the limit.
    store.release(claim, False, "SIGTERM")
    outcomes = []
    while claim := store.reserve(study_id, worker, lambda counts: None):
        outcomes.append(store.fail(claim, store_factory.failure("made up", cause)))
        assert states(store) == [outcomes[-1]]
    assert outcomes == ["queued"] * (MOST_ATTEMPTS[cause] - 1) + ["failed"]
    kinds = [event["kind"] for event in store.events(study="demo")]
    assert kinds.count("trial_requeued") == MOST_ATTEMPTS[cause] - 1
    assert kinds[-1] == "trial_failed"
    (row,) = store.rows("demo")
    assert row.cause == cause
    assert row.reason.startswith(f"{cause.replace('_', ' ')}: made up")
    assert store.study("demo").n_running == 0


def test__busy_s__worker_died__stops_with_its_lease_although_nobody_took_it_back(
    store, study_id, worker, frozen
):
    store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    let_pass(store, 1000)
    assert store.study("demo").busy_s == store.lease_s
    store.reap()
    assert store.study("demo").busy_s == store.lease_s


def test__busy_s__another_worked_on_after_one_was_lost__counts_to_its_end(
    store, study_id, worker, frozen
):
    store_factory.claim_and_commit(store, study_id, worker, "attention*2")  # lost after 90 s
    other = store_factory.claim_and_commit(store, study_id, worker, "sepconv*2")
    for _ in range(2):
        let_pass(store, 80)
        assert store.heartbeat(other)
    store.finish(other, store_factory.result())
    assert store.study("demo").busy_s == 160
    assert store.reap() == 1
    assert store.study("demo").busy_s == 160


def test__busy_s__live_leases__count_once_and_gaps_not_at_all(store, study_id, worker, frozen):
    def busy():
        return store.study("demo").busy_s

    first = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    let_pass(store, 30)
    second = store_factory.claim_and_commit(store, study_id, worker, "sepconv*2")
    let_pass(store, 30)
    store.finish(first, store_factory.result())
    let_pass(store, 10)
    store.heartbeat(second)
    assert busy() == 70
    let_pass(store, 500)  # the lease ended 90 s after the heartbeat
    store.reap()
    assert busy() == 160
    let_pass(store, 1000)
    assert busy() == 160
    third = store.reserve(study_id, worker, lambda counts: None)
    let_pass(store, 60)
    store.fail(third, store_factory.failure())
    assert busy() == 220


def test__register_worker__sqlite_from_a_second_machine__refused(store, study_id, worker):
    store_factory.reserve(store, study_id, worker)
    if store.address.is_sqlite:
        with pytest.raises(StoreError, match=r"use PostgreSQL .* or .*'search serve'"):
            store.register_worker(host="other")
        let_pass(store, 91)
    assert store.register_worker(host="other") > worker


def test__close_worker__is_noted(store, worker):
    store.close_worker(worker)
    with store.reading() as connection:
        assert connection.execute(select(Worker.closed_at)).scalar_one() is not None


def test__events__transitions__by_rising_id(store, study_id, worker):
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    store.report(claim, store_factory.reports(2.0, validations=1))
    store.release(claim, False, "SIGTERM")
    again = store.reserve(study_id, worker, lambda counts: None)
    store.finish(again, store_factory.result())
    found = store.events(study="demo")
    assert [event["kind"] for event in found] == [
        "study_created",
        "trial_started",
        "report",
        "trial_preempted",
        "trial_resumed",
        "trial_completed",
    ]
    ids = [event["id"] for event in found]
    assert ids == sorted(set(ids))
    assert store.events(ids[2]) == found[3:]
    assert store.events(ids[2], limit=1) == found[3:4]
    assert found[2]["data"]["metrics"]["selection.loss"] == 2.0
    with store.reading() as connection:
        assert connection.execute(select(Trial.state)).scalar_one() == "completed"
