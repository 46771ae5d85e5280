"""`search worker` over a real store, with made-up trainings in place of the slots."""

from types import SimpleNamespace

import pytest
import store_factory
from own_study import Recorder, own_study
from scripted import Scripted, result
from served import server_of

import search.workers.pull as module
from search.engine import needs
from search.engine.preparing import Prepared
from search.engine.stopping import StopFlag
from search.errors import NothingThereError
from search.remote.working import RemoteWorkerStore
from search.settings import Settings


@pytest.fixture(params=["direct", "served"])
def reached(request, store, ready_url):
    """The store as a worker reaches it: by its database, or through a service."""
    if request.param == "direct":
        yield store
        return
    with server_of(ready_url) as (base, _), RemoteWorkerStore(base) as remote:
        yield remote


@pytest.fixture
def pull(reached, monkeypatch, tmp_path):
    """`pull` until idle, with a script per slot; returns how many trials it started."""
    monkeypatch.setattr(module, "prepare", lambda study, cache_dir: Prepared("f"))

    def start(*scripts, **options):
        seats = [
            SimpleNamespace(device="cpu", threads=1, script=script, close=lambda: None)
            for script in scripts or (Scripted(),)
        ]
        monkeypatch.setattr(module, "make_slots", lambda *_, **__: seats)
        monkeypatch.setattr(module, "slot_runner", lambda seat, *_: seat.script)
        local = Settings(cache_dir=tmp_path, files_dir=tmp_path / "files", poll_s=0.01)
        return module.pull(reached, local, **{"until_idle": True} | options)

    return start


def ask(store, name, budget, plugins=store_factory.PLUGINS):
    sizes = {"d_model": 32, "n_layers": 3, "d_ff": 64}
    study = store_factory.study_spec(strategy={"name": "random"}, recall=False, encoder=sizes)
    row = store.ensure_study(name, study, plugins)
    if budget is not None:
        store.ask_budget(row.id, budget)
    return row


def states(store, name):
    return [row.state for row in store.rows(name)]


def test__pull__several_studies__each_up_to_its_own_budget(store, pull):
    ask(store, "a", "3")
    ask(store, "b", "2")
    ask(store, "not asked for", None)
    assert pull() == 5
    assert (states(store, "a"), states(store, "b")) == (["completed"] * 3, ["completed"] * 2)
    assert states(store, "not asked for") == []
    assert {store.study(name).state for name in "ab"} == {"completed"}
    assert pull() == 0
    store.ask_budget(store.study("a").id, "5")
    assert pull() == 2


def test__pull__two_slots__the_budget_is_exact_and_no_architecture_twice(store, pull):
    ask(store, "a", "7")
    assert pull(Scripted(), Scripted()) == 7
    rows = store.rows("a")
    assert [row.state for row in rows] == ["completed"] * 7
    assert len({(row.mixers, row.seed_index) for row in rows}) == 7
    assert store.query("SELECT slots FROM workers").rows == [(2,)]


def test__pull__one_study_named__the_others_are_left(store, pull):
    ask(store, "a", "2")
    ask(store, "b", "2")
    assert pull(study="b") == 2
    assert states(store, "a") == []
    with pytest.raises(NothingThereError, match="no study"):
        pull(study="c")


def test__pull__study_of_a_script__left_with_a_word_and_the_others_trained(store, pull):
    row = store.ensure_study("mine", own_study(), {})
    store.ask_budget(row.id, "4")
    ask(store, "b", "1")
    seen = Recorder()
    assert pull(observer=seen) == 1
    assert states(store, "mine") == []
    assert any("mine" in text and "script" in text for text in seen.messages)


def test__pull__package_of_another_version__study_is_left_with_a_word(store, pull, monkeypatch):
    ask(store, "a", "2", {"attention": ("pack", "1.0")})
    monkeypatch.setattr(needs, "plugins_of", lambda study: {"attention": ("pack", "2.0")})
    seen = Recorder()
    assert pull(observer=seen) == 0
    assert any("pack 2.0 here" in text and "pack 1.0" in text for text in seen.messages)


def test__pull__study_paused_meanwhile__trial_goes_back_and_waits(store, pull, monkeypatch):
    row = ask(store, "a", "2")
    monkeypatch.setenv("SEARCH_BEAT_S", "0.02")

    def paused_in_the_midst(on_message, should_stop):
        store.set_study_state(row.id, "paused", "by hand")
        while (reason := should_stop()) is None:
            pass
        return result(outcome="stopped", reason=reason, splits=())

    assert pull(Scripted(paused_in_the_midst)) == 1
    assert states(store, "a") == ["queued"]
    assert store.study("a").state == "paused"
    store.set_study_state(row.id, "running", None)
    assert pull() == 1
    assert states(store, "a") == ["completed"] * 2


def test__pull__its_time_is_up__what_is_in_hand_goes_back(store, pull):
    ask(store, "a", "3")
    now = [0.0]
    stop = StopFlag(until=10.0, clock=lambda: now[0])

    def until_told(on_message, should_stop):
        now[0] = 10.0
        return result(outcome="stopped", reason=should_stop(), splits=())

    assert pull(Scripted(None, until_told), stop=stop, until_idle=False) == 2
    assert states(store, "a") == ["completed", "queued"]
