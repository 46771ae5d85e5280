"""Work over HTTP: what a worker without a database may do, and what a lost answer costs."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import store_factory
from scripted import Scripted, result
from served import make_token, server_of

import search.workers.pull as module
from search.engine.claims import FINGERPRINT
from search.engine.preparing import Prepared
from search.engine.terms import Terms
from search.errors import AccessError, InputError, NothingThereError, StoreAwayError
from search.messages import Progress, Report, Warned
from search.phases.quotas import Agenda
from search.phases.rungs import Promotions
from search.remote.working import RemoteWorkerStore
from search.rows import Claim
from search.settings import Settings
from search.spec.budget import Budget
from search.store import tokens
from search.store.repo import Store
from search.workers.on_ray import RayWorker
from service.rowfeed import RowFeed

AGENDA = Agenda(0, frozenset({"search"}))
TERMS = Terms(Budget("trials", 10**6), AGENDA, Promotions())


@pytest.fixture
def both(filled: str) -> Iterator[tuple[Store, RemoteWorkerStore]]:
    """A store with the finished study `demo` of 8 trials, budget 10, and a client."""
    with Store.open(filled) as store:
        store.ask_budget(1, "10")
        with server_of(filled) as (base, _), RemoteWorkerStore(base) as remote:
            yield store, remote


def commit(remote: Any, claim: Claim, notation: str, **changes: Any) -> str:
    given: dict[str, Any] = {
        "seed": 0,
        "seed_index": 0,
        "training_key": "k9",
        "role": None,
        "params": {"layer_0": notation},
        "attrs": {},
        "study_attrs": {},
        "recipe": {},
        "flops": 10,
        "most_flops": None,
        "splits": ("selection",),
        "until": None,
    }
    spec = changes.pop("spec", None) or store_factory.encoder_spec(notation)
    return str(remote.commit(claim, spec, **(given | changes)))


def claimed(remote: RemoteWorkerStore, worker: int) -> Claim:
    claim = remote.claim(1, worker, TERMS).claim
    assert claim is not None
    return claim


def test__claims__a_worker_that_asks_for_more_than_the_study_has__gets_the_budget_exactly(
    both,
) -> None:
    store, remote = both
    worker = remote.register_worker(devices=["cpu"], slots=2)
    first, second = claimed(remote, worker), claimed(remote, worker)
    assert [first.number, second.number] == [8, 9]
    offer = remote.claim(1, worker, TERMS)
    assert offer.claim is None
    assert offer.counts is not None
    assert offer.counts.started == 10
    assert len(store.rows(1)) == 10
    store.set_study_state(1, "paused", "by hand")
    assert remote.claim(1, worker, TERMS).counts is None


def test__claims__of_many_workers_at_once__never_exceed_the_budget(both) -> None:
    store, remote = both
    store.ask_budget(1, "30")
    started: list[int] = []

    def work() -> None:
        with RemoteWorkerStore(remote.url) as mine:
            worker = mine.register_worker(devices=["cpu"], slots=1)
            while (claim := mine.claim(1, worker, TERMS).claim) is not None:
                started.append(claim.number)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(started) == list(range(8, 30))


def test__study__ended_while_another_worker_has_a_trial__goes_on(both) -> None:
    store, remote = both
    worker = remote.register_worker()
    claim = remote.claim(1, worker, TERMS).claim
    remote.set_study_state(1, "completed", "budget")
    assert store.study(1).state == "running"
    remote.release(claim, True, "nothing to train")
    remote.set_study_state(1, "completed", "budget")
    assert store.study(1).state == "completed"


def test__claim__whose_answer_never_arrived__goes_back_with_the_next_one(both) -> None:
    store, remote = both
    worker = remote.register_worker(devices=["cpu"], slots=1)
    lost = claimed(remote, worker)
    remote.held.clear()  # as if the answer had never arrived
    again = claimed(remote, worker)
    assert again.number == lost.number
    assert len(store.rows(1)) == 9
    # A trial that has its architecture goes back to the queue and comes again.
    assert commit(remote, again, "attention*2") == "running"
    remote.held.clear()
    third = claimed(remote, worker)
    assert (third.trial_id, third.token) == (again.trial_id, again.token + 1)
    outcomes = [a["outcome"] for a in store.trial(third.trial_id)["attempts"]]
    assert outcomes == ["preempted", None]


def test__every_write__sent_twice__does_once_what_it_says(both) -> None:
    store, remote = both
    worker = remote.register_worker(devices=["cpu"], slots=1)
    claim = claimed(remote, worker)
    assert [commit(remote, claim, "attention*2") for _ in range(2)] == ["running"] * 2
    said = [
        Warned(text="hm"),
        Progress(step=1, steps=3),
        Report(step=1, split="selection", metrics={"loss": 2.0}),
    ]
    assert [remote.report(claim, said) for _ in range(2)] == [True, True]
    before = store.events(0)[-1]["id"]
    mine = [event["kind"] for event in store.events(0) if event["trial_id"] == claim.trial_id]
    assert sorted(mine) == ["report", "trial_started", "warning"]
    brought = store_factory.result(1.5)
    assert [remote.finish(claim, brought) for _ in range(2)] == [True, True]
    row = next(row for row in store.rows(1) if row.id == claim.trial_id)
    assert (row.state, row.selection["loss"], row.curve) == ("completed", 1.5, ((1, 2.0),))
    assert [event["kind"] for event in store.events(before)] == ["trial_completed"]
    other = claimed(remote, worker)
    assert commit(remote, other, "sepconv*2") == "running"
    failure = store_factory.failure()
    assert [remote.fail(other, failure) for _ in range(2)] == ["failed", "failed"]
    assert len(store.trial(other.trial_id)["attempts"]) == 1


def test__lease__taken_over__every_write_says_so_as_the_store_does(both) -> None:
    store, remote = both
    worker = remote.register_worker(devices=["cpu"], slots=1)
    claim = claimed(remote, worker)
    assert commit(remote, claim, "attention*2") == "running"
    assert remote.heartbeat(claim) == "running"
    store.release(claim, False, "taken away")
    assert remote.heartbeat(claim) is None
    assert not remote.report(claim, [Progress(step=1, steps=2)])
    assert remote.fail(claim, store_factory.failure()) == "lost"
    assert not remote.finish(claim, store_factory.result())
    assert commit(remote, claim, "sepconv*2") == "lost"
    remote.release(claim, False, "again")
    assert store.trial(claim.trial_id)["attempts"][0]["outcome"] == "preempted"
    gone = Claim(study_id=1, trial_id=999, number=1, phase="search", token=1, lease_s=9.0)
    assert remote.heartbeat(gone) is None


def test__commit__of_what_is_not_the_studys_own__is_refused(both) -> None:
    _, remote = both
    worker = remote.register_worker(devices=["cpu"], slots=1)
    claim = claimed(remote, worker)
    wide = store_factory.study_spec(encoder={"d_model": 64, "n_layers": 2, "d_ff": 64})
    spec = store_factory.encoder_spec("attention*2", wide)
    with pytest.raises(InputError, match="not those of the study"):
        commit(remote, claim, "", spec=spec)
    assert commit(remote, claim, "attention*2", study_attrs={FINGERPRINT: "one"}) == "running"
    with pytest.raises(InputError, match="begun with other data"):
        commit(remote, claimed(remote, worker), "sepconv*2", study_attrs={FINGERPRINT: "two"})


def test__rows__copied__equal_the_stores_and_only_changes_travel(both, monkeypatch) -> None:
    store, remote = both
    assert remote.rows(1, curves=False) == store.rows(1, curves=False)
    sent: list[int] = []
    get = remote.get

    def counted(path: str, **query: Any) -> Any:
        found = get(path, **query)
        sent.append(len(found["rows"]) + len(found["gone"]))
        return found

    monkeypatch.setattr(remote, "get", counted)
    kept = remote.rows(1, curves=False)
    worker = store.register_worker()
    claim = store_factory.claim_and_commit(store, 1, worker, "attention*2", training_key="k9")
    now = remote.rows(1, curves=False)
    assert now == store.rows(1, curves=False)
    assert all(one is other for one, other in zip(kept, now, strict=False))
    reserved = store_factory.reserve(store, 1, worker)
    assert len(remote.rows(1, curves=False)) == 10
    store.release(reserved, True, "nothing left")
    store.finish(claim, store_factory.result(1.0))
    assert remote.rows(1, curves=False) == store.rows(1, curves=False)
    assert sent == [0, 1, 1, 2]


def test__row_feed__page_by_page_and_after_a_restart__gives_the_same_rows(filled: str) -> None:
    with Store.open(filled) as store:
        feed = RowFeed(store)
        first = feed.since(1, None, 0, most=3)
        assert (len(first.rows), first.more) == (3, True)
        rest = feed.since(1, first.epoch, first.revision)
        assert not rest.more
        assert [*first.rows, *rest.rows] == store.rows(1, curves=False)
        assert feed.since(1, first.epoch, rest.revision).rows == []
        restarted = RowFeed(store).since(1, first.epoch, rest.revision)
        assert restarted.epoch != first.epoch
        assert restarted.rows == store.rows(1, curves=False)
        with pytest.raises(NothingThereError):
            feed.since(77, None, 0)


def test__workers_behind_a_service__on_any_machine__leave_those_beside_the_file_alone(
    both, monkeypatch
) -> None:
    store, remote = both
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    claim = claimed(remote, remote.register_worker(devices=["cpu"], slots=1))
    assert commit(remote, claim, "attention*2") == "running"
    monkeypatch.undo()
    beside = store.register_worker()
    store_factory.reserve(store, 1, beside)
    names = store.query("SELECT name, pid FROM workers ORDER BY id DESC LIMIT 2").rows
    assert names[1][0].startswith("elsewhere-")
    assert names[1][1] == 0
    # Nothing is concluded from a process id of another machine.
    assert store.reap() == 0


def test__service__trial_of_a_lost_worker__back_in_the_queue(filled: str, monkeypatch) -> None:
    monkeypatch.setenv("SEARCH_LEASE_S", "0.1")
    with Store.open(filled, lease_s=-1.0) as store:  # over when it begins
        store_factory.claim_and_commit(store, 1, store.register_worker(), "attention*3")
        assert store.study(1).n_running == 1
        with server_of(filled):
            end = time.monotonic() + 60
            while store.study(1).n_running:
                assert time.monotonic() < end
                time.sleep(0.02)
        assert store.rows(1)[-1].state == "queued"


@pytest.fixture
def local(monkeypatch, tmp_path) -> Settings:
    """The settings of a machine whose trainings are made up."""
    seat = SimpleNamespace(device="cpu", threads=1, close=lambda: None)
    monkeypatch.setattr(module, "make_slots", lambda *_, **__: [seat])
    monkeypatch.setattr(module, "prepare", lambda *_: Prepared("f"))
    return Settings(cache_dir=tmp_path, files_dir=tmp_path / "files", beat_s=0.02)


def test__token__of_a_reader_or_unknown__ends_the_worker_at_once(filled: str, local) -> None:
    token = make_token(filled, "read")
    with server_of(filled) as (base, _):
        for shown in (token, None, "mixsearch_wrong"):
            with RemoteWorkerStore(base, shown) as remote, pytest.raises(AccessError):
                module.pull(remote, local)


def test__token__revoked_in_mid_trial__ends_the_worker_and_the_next_one_hands_on(
    both, local, monkeypatch
) -> None:
    store, remote = both
    study = store_factory.study_spec(strategy={"name": "random"}, recall=False)
    store.ask_budget(store.ensure_study("new", study, {}).id, "1")

    def revoked(on_message: Any, should_stop: Any) -> Any:
        with store.writing() as connection:
            tokens.revoke(connection, "submit")
        while (reason := should_stop()) is None:
            time.sleep(0.01)
        return result(outcome="stopped", reason=reason, splits=())

    script = Scripted(revoked)
    monkeypatch.setattr(module, "slot_runner", lambda *_: script)
    token = make_token(store.address.path.as_posix(), "submit")
    with RemoteWorkerStore(remote.url, token) as mine, pytest.raises(AccessError):
        module.pull(mine, local, study="new")
    assert [row.state for row in store.rows("new")] == ["running"]
    again = make_token(store.address.path.as_posix(), "submit", "again")
    with RemoteWorkerStore(remote.url, again) as mine:
        module.pull(mine, local, study="new", until_idle=True)
    assert [row.state for row in store.rows("new")] == ["completed"]
    [row] = store.rows("new")
    outcomes = [attempt["outcome"] for attempt in store.trial(row.id)["attempts"]]
    assert outcomes == ["preempted", "completed"]


def test__ray_actor__for_a_service__trains_without_the_store(
    both, local, monkeypatch, tmp_path
) -> None:
    store, remote = both
    study = store_factory.study_spec(strategy={"name": "random"}, recall=False)
    store.ask_budget(store.ensure_study("new", study, {}).id, "1")
    monkeypatch.setattr(module, "slot_runner", lambda *_: Scripted())
    for name in ("FILES", "CACHE"):
        monkeypatch.setenv(f"SEARCH_{name}_DIR", str(tmp_path / name))
    token = make_token(store.address.path.as_posix(), "submit")
    nowhere = f"sqlite:///{tmp_path}/nowhere/search.db"
    assert RayWorker().work(nowhere, remote.url, token, "new", True) == 1
    assert [row.state for row in store.rows("new")] == ["completed"]


def test__service__not_there_or_at_its_limit__is_a_store_that_is_away(filled: str) -> None:
    with server_of(filled) as (base, app), RemoteWorkerStore(base) as remote:
        assert remote.open_studies() == []
        app.state.store.close()
        app.state.feed.store = app.state.store = SimpleNamespace(open_studies=away)
        with pytest.raises(StoreAwayError):
            remote.open_studies()
        app.state.store = SimpleNamespace(close=lambda: None, lease_s=90.0)
    with pytest.raises(StoreAwayError, match="does not answer"):
        remote.open_studies()


def away(only: str | None) -> None:
    raise StoreAwayError("the database is away")
