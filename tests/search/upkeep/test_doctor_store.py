"""Why nothing is running, and what else `search doctor` sees in a store."""

import threading
import time

import pytest
import store_factory
from sqlalchemy import text

from search.settings import Settings
from search.store.health import Blocked
from search.upkeep import doctor_store


@pytest.fixture
def local(tmp_path):
    return Settings(cache_dir=tmp_path / "cache", files_dir=tmp_path / "files")


@pytest.fixture
def study_id(store):
    return store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id


@pytest.fixture
def worker(store, study_id):
    return store.register_worker(host="here", pid=7)


def findings(ready_url, local, topic):
    return [f for f in doctor_store.store_health(ready_url, local) if f.topic == topic]


def about(store, ready_url, local):
    """Status and words of what is said about the study."""
    return [(f.status, f.detail, f.advice) for f in findings(ready_url, local, "study demo")]


def test__study__each_reason_why_nothing_runs__is_told_from_the_others(
    store, ready_url, local, study_id, worker
):
    [(status, words, _)] = about(store, ready_url, local)
    assert (status, "idle: no worker is at it" in words) == ("ok", True)

    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    [(status, words, _)] = about(store, ready_url, local)
    assert (status, words) == ("ok", "running, trials by worker: here-7: 0")

    store.release(claim, False, "preempted")
    [(status, words, advice)] = about(store, ready_url, local)
    assert (status, words) == ("warning", "1 trial in the queue and no worker at it")
    assert "search worker" in advice

    store.change_state(study_id, "paused")
    [(status, words, advice)] = about(store, ready_url, local)
    assert words == "hands out nothing: it is paused (by hand), 1 trial in the queue"
    assert (status, advice) == ("warning", "search resume demo")

    store.change_state(study_id, "running")
    store.ask_budget(study_id, "1")
    claim = store.reserve(study_id, worker, lambda counts: None)
    store.fail(claim, store_factory.failure("ValueError: no luck", cause="out_of_memory"))
    told = about(store, ready_url, local)
    assert told[0][1] == "idle: its budget of 1 trial is used up"
    assert told[1][:2] == (
        "warning",
        "1 trial failed (1 out_of_memory); the last, 0: ValueError: no luck",
    )
    store.set_study_state(study_id, "failed", "failed")
    assert about(store, ready_url, local)[0][1] == "ended without a result: 1 failed"
    store.set_study_state(study_id, "completed", "budget")
    assert about(store, ready_url, local)[0][1] == "ended (budget); a larger budget goes on"


def test__leases__dead_left_and_late_workers__each_named(store, ready_url, local, study_id, worker):
    dead = store_factory.claim_and_commit(store, study_id, worker, "attention*2")
    store_factory.claim_and_commit(store, study_id, worker, "sepconv*2")
    with store.writing() as connection:
        connection.execute(
            text("UPDATE attempts SET lease_expires_at = started_at WHERE trial_id = :t"),
            {"t": dead.trial_id},
        )
    [finding] = findings(ready_url, local, "leases")
    assert (finding.status, "took back 1 trial of workers" in finding.detail) == ("warning", True)
    assert findings(ready_url, local, "leases") == []
    store.finish(dead, store_factory.result())
    store.close_worker(worker)
    words = [detail for _, detail, _ in about(store, ready_url, local)]
    assert any("trial 1 is held by a worker that has ended" in line for line in words), words
    assert any("1 result came after the lease was lost" in line for line in words), words


def test__workers__idle_ones__listed_while_they_give_signs(store, ready_url, local, study_id):
    worker = store.register_worker(host="idle", pid=3)
    [finding] = findings(ready_url, local, "workers")
    assert finding.detail.endswith(": idle-3")
    store.close_worker(worker)
    [finding] = findings(ready_url, local, "workers")
    assert finding.detail.endswith(": none")


def test__spool__result_in_waiting__said(store, ready_url, local, study_id):
    from search.files import Files

    folder = Files.of(store.address, local).spool
    assert findings(ready_url, local, "spool") == []
    folder.mkdir(parents=True)
    (folder / "trial-1-attempt-1.json").write_text("{}")
    [finding] = findings(ready_url, local, "spool")
    assert str(folder) in finding.detail


def test__locks__somebody_holds_the_store__a_wait_is_noticed(
    store, ready_url, local, study_id, monkeypatch
):
    monkeypatch.setattr(doctor_store, "SLOW_LOCK_S", 0.1)
    [finding] = findings(ready_url, local, "locks")
    assert finding.status == "ok"
    if not store.address.is_sqlite:
        return  # There a writer waits for rows or for a lock, see below.
    held, done = threading.Event(), threading.Event()

    def hold():
        with store.writing():
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    threading.Timer(0.15, done.set).start()
    [finding] = findings(ready_url, local, "locks")
    thread.join()
    assert (finding.status, "a write had to wait" in finding.detail) == ("warning", True)


@pytest.mark.postgres
@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test__blocked__session_that_waits_for_a_lock__named_with_its_holder(store_url):
    from search.store.health import blocked
    from search.store.repo import Store

    with Store.open(store_url) as store:
        with store.writing(7) as holder:
            pid = holder.execute(text("SELECT pg_backend_pid()")).scalar_one()

            def wait():
                with store.writing(7):
                    pass

            waits = threading.Thread(target=wait)
            waits.start()
            found = []
            for _ in range(100):
                with store.reading() as connection:
                    found = blocked(connection)
                if found:
                    break
                time.sleep(0.02)
        waits.join()
        assert [(one.holds, one.waits != pid) for one in found] == [(pid, True)]
        assert "idle in transaction" in found[0].state
    [finding] = doctor_store.blocked_findings([Blocked(waits=1, holds=2, state="", since_s=3.0)])
    assert "session 1 waits for session 2" in finding.detail


@pytest.mark.parametrize(
    ("ahead_s", "is_own", "status", "words"),
    [
        (3600.0, False, "warning", "3600 s ahead of the database's"),
        (-3600.0, False, "warning", "3600 s behind the database's"),
        (0.5, False, "ok", "0.5 s ahead of"),
        (3600.0, True, "ok", "this machine's clock"),
    ],
)
def test__clock__skew__warned_of_where_it_can_be_seen(ahead_s, is_own, status, words):
    finding = doctor_store.clock_finding(ahead_s, is_own=is_own)
    assert (finding.status, words in finding.detail) == (status, True)
    assert bool(finding.advice) == (status == "warning")


def test__clock__of_this_machine__agrees_with_the_database_beside_it(store):
    assert doctor_store.clock(store).status == "ok"


def test__store_health__store_that_cannot_be_opened__left_to_the_check_of_the_store(
    tmp_path, local
):
    (tmp_path / "search.db").write_text("not a database")
    assert list(doctor_store.store_health(str(tmp_path / "search.db"), local)) == []
    assert list(doctor_store.store_health(str(tmp_path / "none.db"), local)) == []
