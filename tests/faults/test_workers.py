"""Workers that are killed, suspended, off the clock or crowded: every promise still holds."""

import signal
import time
from contextlib import closing
from sqlite3 import connect

import pytest
from crew import PATIENT, SMALL
from flatness import growth

from search.store.repo import Store

# A heartbeat and a report may each have a connection of their own for a moment.
FILES_OF_A_BEAT = 8


def outcomes(document):
    return [attempt["outcome"] for attempt in document["attempts"]]


@pytest.mark.parametrize("point", ["after_claim", "mid_step", "before_finish"])
def test__C37__SIGKILL_before_the_end_of_a_trial__another_attempt_brings_it_to_its_end(crew, point):
    crew.start(2, FAULT=point)
    codes = sorted(code for code, _ in crew.ends())
    assert codes == [-signal.SIGKILL, 0]
    found = [outcomes(document) for document in crew.finish()]
    assert ["lost", "completed"] in found
    # On a slow machine a live worker may lose a lease as well; nothing else may happen.
    assert all({*outcome[:-1]} <= {"lost"} and outcome[-1] == "completed" for outcome in found)


def test__SIGKILL__after_the_end_of_a_trial__nothing_is_done_twice(crew):
    crew.sizes = PATIENT
    crew.start(2, FAULT="after_finish")
    codes = sorted(code for code, _ in crew.ends())
    assert codes == [-signal.SIGKILL, 0]
    assert all(outcomes(document) == ["completed"] for document in crew.finish())


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGTERM], [signal.SIGUSR1], [signal.SIGINT], [signal.SIGINT] * 2],
    ids=["TERM", "USR1", "INT", "INT-INT"],
)
def test__signal__in_a_trial__it_is_handed_on_at_once_and_nothing_runs(crew, signals):
    crew.start(1, FAULT_STEP_S=0.2)
    crew.wait_for_trials(1)
    for number in signals:
        crew.processes[0].send_signal(number)
    [(code, said)] = crew.ends()
    assert code == 130
    assert "nothing is lost" in said
    with Store.open(crew.url) as store:
        assert store.study("faults").n_running == 0
        assert {row.state for row in store.rows("faults")} <= {"completed", "queued"}
    crew.finish()


def test__SIGSTOP__past_the_lease__fenced_off_and_goes_on_with_other_work(crew):
    crew.budget = 8
    crew.start(1, FAULT_STEP_S=0.1)
    crew.wait_for_trials(1)
    suspended = crew.processes[0]
    crew.suspend(suspended)
    crew.start(1, FAULT_STEP_S=0.05)
    crew.wait_for_trials(3)
    time.sleep(SMALL.lease_s)
    suspended.send_signal(signal.SIGCONT)
    assert [code for code, _ in crew.ends()] == [0, 0]
    documents = crew.finish()
    assert all(outcomes(d)[-1] == "completed" for d in documents)
    assert all(outcomes(d)[:-1] in ([], ["lost"], ["orphan"]) for d in documents)


def test__worker_clock_off_by_an_hour__nothing_changes(crew):
    crew.sizes = PATIENT
    crew.start(1, FAULT_CLOCK=-3600)
    crew.start(1, FAULT_CLOCK=3600)
    assert [code for code, _ in crew.ends()] == [0, 0]
    assert all(outcomes(document) == ["completed"] for document in crew.finish(lost=0))


def test__crowd__budget_exact_and_every_trial_once(crew):
    crew.sizes, crew.budget = PATIENT, 18
    crew.start(3, FAULT_STEP_S=0.005)
    assert [code for code, _ in crew.ends()] == [0] * 3
    assert all(outcomes(document) == ["completed"] for document in crew.finish(lost=0))


def test__twenty_workers_for_some_time__memory_and_open_files_stay_flat(crew):
    crew.sizes, crew.budget, crew.layers = PATIENT, 100, 6
    crew.start(20, FAULT_STEP_S=0.3)
    grown = growth(crew, crew.budget)
    assert grown.files <= FILES_OF_A_BEAT
    assert grown.bytes <= 8 << 20
    crew.finish(lost=0)


@pytest.mark.parametrize(
    ("fault", "state", "cause"),
    [
        ("raises", "failed", "error"),
        ("exits", "failed", "error"),
        ("memory", "failed", "out_of_memory"),
        ("nan", "diverged", None),
    ],
)
def test__one_trial_goes_wrong__its_cause_is_recorded_and_the_others_are_unharmed(
    crew, fault, state, cause
):
    crew.sizes = PATIENT
    crew.start(1, FAULT_TRIAL=fault, FAULT_STEP_S=0.001)
    assert [code for code, _ in crew.ends()] == [0]
    states = {document["number"]: document["state"] for document in crew.finish(lost=0)}
    assert states == {0: state} | dict.fromkeys(range(1, 5), "completed")
    assert crew.rows()[0].cause == cause


def test__SQLite_write_lock_held__past_the_lease__no_error_reaches_a_trial(tmp_path, sqlite_crew):
    crew = sqlite_crew
    crew.start(1, FAULT_STEP_S=0.1)
    crew.wait_for_trials(1)
    with closing(connect(tmp_path / "search.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(SMALL.lease_s + 1)
        other.execute("ROLLBACK")
    assert [code for code, _ in crew.ends()] == [0]
    assert all(outcomes(document)[-1] == "completed" for document in crew.finish())


def test__SQLite_disk_full__says_so_and_goes_on_once_there_is_room(sqlite_crew):
    crew = sqlite_crew
    crew.start(1)
    crew.wait_for_trials(1)
    crew.processes[0].kill()
    crew.ends()
    with Store.open(crew.url) as store, store.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    crew.start(1, FAULT_PAGES=pages)
    [(code, said)] = crew.ends()
    assert code == 3, said
    assert "the disk is full; free some space" in said
    assert "Traceback" not in said
    crew.finish()
