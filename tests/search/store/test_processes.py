"""Several real processes on one store. The same with more of them is a soak test."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import store_factory

SUPPORT = Path(store_factory.__file__).parent
PROCESSES = 4


@pytest.fixture
def study_id(store):
    return store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id


def run_together(script, *arguments):
    """Run the script in several processes at once; all must end well."""
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": str(root)}
    processes = [
        subprocess.Popen(
            [sys.executable, SUPPORT / script, *map(str, arguments)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES, errors


def test__reserve__queued_trials_and_processes__each_once(store, ready_url, study_id, tmp_path):
    worker = store.register_worker()
    queued = []
    for seed in range(40):
        claim = store_factory.claim_and_commit(
            store, study_id, worker, "attention*2", seed=seed, seed_index=seed
        )
        queued.append(claim)
    for claim in queued:
        store.release(claim, False, "SIGTERM")
    run_together("claim_queue.py", ready_url, study_id, tmp_path / "log")
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    taken = Counter(int(trial_id) for trial_id, _, _ in lines)
    assert taken == Counter(claim.trial_id for claim in queued)
    assert {token for _, token, _ in lines} == {"2"}
    rows = store.rows("demo")
    assert {row.state for row in rows} == {"failed"}
    owner = {int(trial_id): worker for trial_id, _, worker in lines}
    found = store.query("SELECT id, worker_id FROM trials").rows
    assert {trial_id: str(worker) for trial_id, worker in found} == owner
    assert store.study("demo").n_running == 0


def test__reserve__budget_and_processes__exact_with_rising_numbers(store, ready_url, study_id):
    run_together("claim_budget.py", ready_url, study_id, 30)
    rows = store.rows("demo")
    assert [row.number for row in rows] == list(range(30))
    run_together("claim_budget.py", ready_url, study_id, 32)
    assert len(store.rows("demo")) == 32
