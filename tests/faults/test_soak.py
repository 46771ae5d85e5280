"""The faults of this folder at the sizes of real life: leases of 90 s, outages of a minute.

    pytest -m soak tests/faults

They mostly wait. The same scenarios run with seconds in place of minutes at every change.
"""

import time
from contextlib import closing
from sqlite3 import connect

import busy_worker
import pytest
import store_factory
from crew import LITERAL, Crew
from cut_proxy import CutProxy
from flatness import growth
from postgres import cluster
from store_fixtures import cluster_or_skip
from together import finish, start

from search.store.repo import Store

pytestmark = pytest.mark.soak

WORKERS, MINUTES = 200, 10
REMEMBERED = 16 << 10
"""Bytes of a trial of its study that a worker keeps: 8 KB for its row, the rest for the sampler."""
QUEUED = 200


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("mode", "seconds"), [("fast", 0), ("fast", 20), ("fast", 60), ("immediate", 20)]
)
def test__server_away__nothing_is_lost(server, begun, mode, seconds):
    begun.sizes = LITERAL
    begun.start(2, FAULT_STEP_S=2.0)
    begun.wait_for_trials(1)
    server.stop(mode)
    time.sleep(seconds)
    server.start()
    assert [code for code, _ in begun.ends()] == [0, 0]
    begun.finish(lost=0)


@pytest.mark.postgres
def test__network_cut_for_half_a_minute__nothing_is_lost(server, begun):
    begun.sizes, proxy = LITERAL, CutProxy(server.socket)
    try:
        database = begun.url.split("?")[0].split("/")[-1]
        url = f"postgresql://{server.user}@127.0.0.1:{proxy.port}/{database}"
        begun.start(2, url=url, FAULT_STEP_S=2.0)
        begun.wait_for_trials(1)
        proxy.cut()
        time.sleep(30)
        proxy.mend()
        assert [code for code, _ in begun.ends()] == [0, 0]
    finally:
        proxy.close()
    begun.finish(lost=0)


@pytest.mark.parametrize("seconds", [8, 40])
def test__SQLite_locked__no_error_reaches_a_trial(tmp_path, sqlite_crew, seconds):
    crew = sqlite_crew
    crew.sizes = LITERAL
    crew.start(2, FAULT_STEP_S=1.0)
    crew.wait_for_trials(1)
    with closing(connect(tmp_path / "search.db", isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        other.execute("ROLLBACK")
    assert [code for code, _ in crew.ends()] == [0, 0]
    crew.finish(lost=0)


def test__queued_trials_and_eight_processes__each_taken_once(store, ready_url, tmp_path):
    study_id = store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id
    worker = store.register_worker()
    queued = [
        store_factory.claim_and_commit(
            store, study_id, worker, "attention*2", seed=seed, seed_index=seed
        )
        for seed in range(QUEUED)
    ]
    for claim in queued:
        store.release(claim, False, "SIGTERM")
    finish(start(8, "claim_queue", ready_url, study_id, tmp_path / "log"))
    taken = [int(line.split()[0]) for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(taken) == [claim.trial_id for claim in queued]
    assert {row.state for row in store.rows("demo")} == {"failed"}


def test__eight_processes__twenty_trials_each__every_field_exact(ready_url):
    finish(start(8, "busy_worker", ready_url, 8 * 20, 1.0))
    with Store.open(ready_url) as store:
        busy_worker.check(store, 8 * 20)


def watch_many(crew):
    """Many workers for some minutes, a trial a minute each."""
    crew.sizes, crew.layers, crew.budget = LITERAL, 6, WORKERS * MINUTES
    crew.start(WORKERS, FAULT_STEP_S=10.0)
    grown = growth(crew, crew.budget, every_s=5.0)
    assert grown.files <= 8
    assert grown.bytes <= (8 << 20) + crew.budget * 2 // 3 * REMEMBERED
    crew.finish(lost=0)


def test__many_workers_on_SQLite__memory_and_open_files_stay_flat(sqlite_crew):
    watch_many(sqlite_crew)


@pytest.mark.postgres
def test__many_workers_on_PostgreSQL__memory_and_open_files_stay_flat(nursery, tmp_path):
    cluster_or_skip()
    with cluster(connections=5 * WORKERS) as server:
        url = server.url(server.create_database())
        with Store.open(url):
            pass
        crew = Crew(nursery, url, tmp_path, WORKERS * MINUTES)
        try:
            watch_many(crew)
        finally:
            crew.close()
