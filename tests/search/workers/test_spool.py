"""What a trial brought while the store was away: kept on disk, delivered once, never lost."""

import pytest
import store_factory

from search.engine.stopping import StopFlag
from search.errors import AccessError, StoreAwayError, StoreError
from search.messages import TrialFailure
from search.workers.patience import Patience
from search.workers.spool import ENDING, Delivery, Spool


@pytest.fixture
def claim(store):
    row = store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS)
    return store_factory.claim_and_commit(store, row.id, store.register_worker(), "attention*2")


class Away:
    """A store that does not answer the first `n` calls of one name."""

    def __init__(self, store, name, n):
        self.store, self.name, self.left = store, name, n
        self.on_disk = []
        self.folder = None

    def __getattr__(self, name):
        call = getattr(self.store, name)
        if name != self.name:
            return call

        def wrapped(*arguments):
            if self.left:
                self.left -= 1
                self.on_disk.append(sorted(p.name for p in self.folder.glob("*")))
                raise StoreAwayError("the store does not answer")
            return call(*arguments)

        return wrapped


def patience_of(stop, said):
    return Patience(stop, said.append, longest_s=0.01)


def result_of():
    return store_factory.result(1.25)


def test__spool__store_comes_back__result_is_stored_and_the_file_gone(store, claim, tmp_path):
    said = []
    away = Away(store, "finish", 2)
    away.folder = tmp_path / "spool"
    spool = Spool(tmp_path / "spool")
    ended = spool.deliver(
        Delivery(claim=claim, result=result_of()), away, patience_of(StopFlag(), said)
    )
    assert ended
    assert away.on_disk == [[], [f"trial-{claim.trial_id}-attempt-1{ENDING}"]]
    assert list((tmp_path / "spool").iterdir()) == []
    [row] = store.rows("demo")
    assert (row.state, dict(row.selection)["loss"]) == ("completed", 1.25)
    assert said[-1] == "the store is back"


def test__spool__told_to_end_while_the_store_is_away__next_worker_delivers(store, claim, tmp_path):
    stop = StopFlag()
    stop.interrupt()
    away = Away(store, "finish", 99)
    away.folder = tmp_path / "spool"
    spool = Spool(tmp_path / "spool")
    with pytest.raises(StoreAwayError):
        spool.deliver(Delivery(claim=claim, result=result_of()), away, patience_of(stop, []))
    assert store.rows("demo")[0].state == "running"
    assert Spool(tmp_path / "spool").send_all(store) == 1
    assert store.rows("demo")[0].state == "completed"
    assert Spool(tmp_path / "spool").send_all(store) == 0


@pytest.mark.parametrize("error", [AccessError("the token is revoked"), StoreError("disk full")])
def test__spool__store_refuses__says_so_at_once_and_keeps_the_result(
    store, claim, tmp_path, monkeypatch, error
):
    def refuse(*_):
        raise error

    spool = Spool(tmp_path / "spool")
    with monkeypatch.context() as patch:
        patch.setattr(store, "finish", refuse)
        with pytest.raises(type(error)):
            spool.deliver(
                Delivery(claim=claim, result=result_of()), store, patience_of(StopFlag(), [])
            )
    assert spool.send_all(store) == 1
    assert store.rows("demo")[0].state == "completed"


def test__spool__delivered_after_the_lease_was_lost__the_newer_attempt_stands(
    store, claim, tmp_path
):
    store.release(claim, False, "preempted")
    second = store.reserve(claim.study_id, store.register_worker(), lambda counts: None)
    assert second.token == 2
    Spool(tmp_path / "spool").keep(Delivery(claim=claim, result=result_of()))
    Spool(tmp_path / "spool").send_all(store)
    assert store.rows("demo")[0].state == "running"
    assert store.finish(second, result_of())


def test__spool__torn_file__set_aside_and_the_others_delivered(store, claim, tmp_path):
    failure = TrialFailure(cause="error", message="made to fail")
    good = Spool(tmp_path / "spool").keep(Delivery(claim=claim, failure=failure))
    torn = tmp_path / "spool" / f"trial-1-attempt-9{ENDING}"
    torn.write_bytes(good.read_bytes()[:40])
    assert Spool(tmp_path / "spool").send_all(store) == 1
    assert store.rows("demo")[0].state == "failed"
    assert [path.suffix for path in (tmp_path / "spool").iterdir()] == [".unreadable"]


@pytest.mark.parametrize("n_away", [0, 3])
def test__patience__store_away_so_often__answers_and_says_it_twice_at_most(n_away):
    said, left = [], [n_away]

    def call():
        if left[0]:
            left[0] -= 1
            raise StoreAwayError("away")
        return 42

    assert patience_of(StopFlag(), said)(call) == 42
    assert len(said) == (2 if n_away else 0)
