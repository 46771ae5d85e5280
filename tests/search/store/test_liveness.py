"""Workers of this machine whose process is gone; the processes and the kills are real."""

import os
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import store_factory
from sqlalchemy import update

from search.store.liveness import is_gone
from search.store.repo import Store
from search.store.tables import Attempt

SCRIPT = Path(__file__).parents[2] / "support" / "claim_and_wait.py"
SLEEP = [sys.executable, "-c", "print(flush=True); import time; time.sleep(600)"]


@contextmanager
def running(command, **options):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def now():
    return datetime.now(UTC)


def reserve(store, study_id):
    return store.reserve(study_id, store.register_worker(), lambda counts: None)


def test__reserve__worker_killed__its_trial_is_taken_over_at_once_on_sqlite_alone(ready_url):
    with Store.open(ready_url) as store:
        study_id = store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id
        claim = store_factory.claim_and_commit(
            store, study_id, store.register_worker(), "attention*2"
        )
        store.release(claim, False, "SIGTERM")
        with running([sys.executable, str(SCRIPT), ready_url, str(study_id)]) as process:
            assert process.stdout.readline() == "claimed\n"
            assert reserve(store, study_id) is None
            process.kill()
            process.wait()
        again = reserve(store, study_id)
        if not store.address.is_sqlite:
            assert again is None
            return
        assert again.token == 3
        lost = store.trial(again.trial_id)["attempts"][1]
        assert (lost["outcome"], lost["cause"]) == ("lost", "lost")
        assert lost["message"] == f"the worker's process {process.pid} is gone"
        assert store.study("demo").busy_s < 60


def test__reap__number_used_again_by_a_younger_process__taken_over(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/search.db") as store, running(SLEEP) as young:
        young.stdout.readline()
        study_id = store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id
        worker = store.register_worker(pid=young.pid)
        store_factory.claim_and_commit(store, study_id, worker, "attention*2")
        assert store.reap() == 0
        with store.writing() as connection:
            connection.execute(update(Attempt).values(heartbeat_at=now() - timedelta(hours=1)))
        assert store.reap() == 1
        assert store.rows("demo")[0].state == "queued"


def test__is_gone__ended_but_not_yet_noticed_by_its_parent__true():
    with running(SLEEP) as process:
        process.stdout.readline()
        assert not is_gone(process.pid, now(), now())
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(process.pid, now(), now())


@pytest.mark.parametrize("pid", [0, -1, 2**40])
def test__is_gone__no_number_of_a_process__counts_as_alive(pid):
    assert not is_gone(pid, now(), now())
