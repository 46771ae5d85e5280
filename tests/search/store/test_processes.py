"""Several real processes on one store. The same with more of them is a soak test."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import store_factory
from sqlalchemy import event
from store_fixtures import copied_store

from search.store.repo import Store

SUPPORT = Path(store_factory.__file__).parent
PROCESSES = 4


@pytest.fixture
def study_id(store):
    return store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id


@contextmanager
def claimants(*arguments):
    """Run several processes until each found the budget full; they live until the block ends."""
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": str(root)}
    processes = [
        subprocess.Popen(
            [sys.executable, SUPPORT / "claim_budget.py", *map(str, arguments)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    try:
        said = [process.stdout.readline() for process in processes]
        assert said == ["full\n"] * PROCESSES
        yield
    finally:
        errors = [process.communicate(timeout=300)[1] for process in processes]
        assert [process.returncode for process in processes] == [0] * PROCESSES, errors


def test__reserve__budget_and_processes__exact_with_rising_numbers(store, ready_url, study_id):
    with claimants(ready_url, study_id, 30):
        assert [row.number for row in store.rows("demo")] == list(range(30))
        with claimants(ready_url, study_id, 32):
            assert [row.number for row in store.rows("demo")] == list(range(32))


@pytest.mark.parametrize("ready_url", ["sqlite"], indirect=True)
def test__reserve__claimants_gone__their_reservations_make_room(store, ready_url, study_id):
    with claimants(ready_url, study_id, 30):
        pass
    with claimants(ready_url, study_id, 12):
        assert len(store.rows("demo")) == 12


@pytest.mark.postgres
def test__trial_on_postgresql__whole__takes_few_messages(tmp_path):
    with Store.open(copied_store("postgresql", tmp_path)) as store:
        store_factory.fill(store, "other")  # what is made once for a store is there
        study_id = store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id
        worker = store.register_worker()
        sent = []
        event.listen(store.engine, "before_cursor_execute", lambda *call: sent.append(call[2]))
        event.listen(store.engine, "commit", lambda connection: sent.append("COMMIT"))
        claim = store_factory.claim_and_commit(store, study_id, worker, "sepconv*2", seed=1)
        messages = store_factory.reports(2.5, validations=3)
        for start in range(0, len(messages), 2):
            assert store.report(claim, messages[start : start + 2])
        assert store.finish(claim, store_factory.result(2.5))
    # Claim, commit, three reports and the end; the clock of the study starts and stops with them.
    assert len(sent) == 35
