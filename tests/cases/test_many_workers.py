"""Several workers on one store at once, and somebody who watches them."""

import json
import threading
import time
from collections import Counter

import busy_worker
import pytest
import store_factory
from command import call
from own_study import loss, own_study
from served import client_of
from together import finish, start

import search
from search.store.repo import Store

WORKERS = 8
QUEUED = 80


def test__C48__eight_workers_on_an_empty_store_and_viewers__no_error_and_every_value(
    store_url, capsys
):
    budget = 32
    processes = start(WORKERS, "busy_worker", store_url, budget, 0.1)
    seen = []
    with client_of(store_url) as dashboard:
        while processes.poll() is None:
            shown = call(capsys, "ls", "--store", store_url, "--json")
            assert shown.code == 0, shown.err
            studies = json.loads(shown.out)
            seen.append(studies[0]["n_trials"] if studies else 0)
            for page in ("/studies", *(f"/studies/{study['name']}/trials" for study in studies)):
                answer = dashboard.get(page)
                assert answer.status_code == 200, answer.text
            time.sleep(0.2)
    finish(processes)
    assert seen == sorted(seen)
    with Store.open(store_url, create=False) as store:
        assert len(store.studies()) == 1
        busy_worker.check(store, budget)
        workers = store.query("SELECT count(*) FROM workers WHERE closed_at IS NOT NULL").rows
    assert workers[0][0] == WORKERS


def test__C49__many_queued_trials_and_eight_processes__each_taken_once(store, ready_url, tmp_path):
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
    finish(start(WORKERS, "claim_queue", ready_url, study_id, tmp_path / "log"))
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    taken = Counter(int(trial_id) for trial_id, _, _ in lines)
    assert taken == Counter(claim.trial_id for claim in queued)
    assert {token for _, token, _ in lines} == {"2"}
    assert {row.state for row in store.rows("demo")} == {"failed"}
    owner = {int(trial_id): worker for trial_id, _, worker in lines}
    found = store.query("SELECT id, worker_id FROM trials").rows
    assert {trial_id: str(worker) for trial_id, worker in found} == owner
    assert store.study("demo").n_running == 0


def run_in_threads(url, n, budget, objective, *, apart_s=0.0, **options):
    """Work on one study from several threads, each as a worker of its own, which join in turn."""
    outcomes, errors = [], []

    def work():
        try:
            study = own_study(objective, **options)
            outcomes.append(search.run(study, budget, url, objective=objective, name="demo"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
        time.sleep(apart_s)
    for thread in threads:
        thread.join()
    assert errors == []
    return outcomes


def rows_of(url):
    with search.open(url) as store:
        return store.rows("demo")


def test__C36__four_workers_that_join_in_turn__ten_trials_then_none_then_two(ready_url):
    def sometimes_fails(architecture, seed, report):
        time.sleep(0.05)
        if architecture.blocks[0].mixer.kind == "bproj":
            raise RuntimeError("no luck")
        return loss(architecture, seed, report)

    first = run_in_threads(ready_url, 4, 10, sometimes_fails, apart_s=0.03)
    rows = rows_of(ready_url)
    assert sum(outcome.started for outcome in first) == len(rows) == 10
    assert {row.state for row in rows} == {"completed", "failed"}
    again = run_in_threads(ready_url, 2, 10, sometimes_fails)
    assert [outcome.started for outcome in again] == [0, 0]
    assert all("nothing started" in outcome.message for outcome in again)
    raised = run_in_threads(ready_url, 4, 12, sometimes_fails)
    assert sum(outcome.started for outcome in raised) == 2
    # A reservation that was given back may leave a number unused.
    assert len({row.number for row in rows_of(ready_url)}) == 12


def test__C39__three_workers_started_together__train_three_different_architectures(ready_url):
    barrier = threading.Barrier(3, timeout=60)

    def together(architecture, seed, report):
        if not barrier.broken:
            barrier.wait()
        return loss(architecture, seed, report)

    run_in_threads(ready_url, 3, 3, together, choices=("attention", "sepconv", "bproj", "average"))
    rows = rows_of(ready_url)
    assert [row.state for row in rows] == ["completed"] * 3
    assert len({row.mixers for row in rows}) == 3


@pytest.mark.parametrize("strategy", ["random", "exhaustive"])
def test__C43__nine_architectures_thirty_trials_three_workers__each_once_and_all_end(
    ready_url, strategy
):
    outcomes = run_in_threads(ready_url, 3, 30, loss, n_layers=2, strategy=strategy)
    assert {outcome.exit_code for outcome in outcomes} == {0}
    assert "space used up" in {outcome.reason for outcome in outcomes}
    keys = [(row.mixers, row.seed_index) for row in rows_of(ready_url)]
    assert len(set(keys)) == len(keys)
    assert len({mixers for mixers, index in keys if index == 0 and len(mixers) == 2}) == 9


def test__C44__architecture_that_ran_out_of_memory__is_never_proposed_again(ready_url):
    asked = Counter()

    def heavy(architecture, seed, report):
        asked[architecture.notation, seed] += 1
        if architecture.notation == "bproj, attention":
            raise MemoryError
        return loss(architecture, seed, report)

    options = {"n_layers": 2, "strategy": "exhaustive"}
    run_in_threads(ready_url, 1, 12, heavy, **options)
    run_in_threads(ready_url, 1, 30, heavy, **options)
    [row] = [row for row in rows_of(ready_url) if row.notation == "bproj, attention"]
    assert row.state == "failed"
    assert "out of memory" in row.reason
    assert {seed for what, seed in asked if what == row.notation} == {0}
