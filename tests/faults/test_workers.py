"""Workers that are killed, suspended, off the clock or crowded: every promise still holds."""

import signal
import time
from contextlib import closing
from sqlite3 import connect

import pytest
from crew import LEASE_S

from search.store.repo import Store


def outcomes(document):
    return [attempt["outcome"] for attempt in document["attempts"]]


@pytest.mark.parametrize("point", ["after_claim", "mid_step", "before_finish"])
def test__SIGKILL__before_the_end_of_a_trial__another_attempt_brings_it_to_its_end(crew, point):
    crew.start(2, FAULT=point)
    codes = sorted(code for code, _ in crew.ends())
    assert codes == [-signal.SIGKILL, 0]
    taken_over = [d for d in crew.finish() if len(d["attempts"]) > 1]
    assert [outcomes(document) for document in taken_over] == [["lost", "completed"]]


def test__SIGKILL__after_the_end_of_a_trial__nothing_is_done_twice(crew):
    crew.start(2, FAULT="after_finish")
    codes = sorted(code for code, _ in crew.ends())
    assert codes == [-signal.SIGKILL, 0]
    assert all(outcomes(document) == ["completed"] for document in crew.finish())


def test__SIGTERM__in_a_trial__it_is_handed_on_at_once_and_nothing_runs(crew):
    crew.start(1, FAULT_STEP_S=0.2)
    crew.wait_for_trials(1)
    crew.processes[0].send_signal(signal.SIGTERM)
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
    suspended.send_signal(signal.SIGSTOP)
    crew.start(1, FAULT_STEP_S=0.05)
    crew.wait_for_trials(3)
    time.sleep(LEASE_S)
    suspended.send_signal(signal.SIGCONT)
    assert [code for code, _ in crew.ends()] == [0, 0]
    documents = crew.finish()
    assert all(outcomes(d)[-1] == "completed" for d in documents)
    assert all(outcomes(d)[:-1] in ([], ["lost"], ["orphan"]) for d in documents)


def test__worker_clock_off_by_an_hour__nothing_changes(crew):
    crew.start(1, FAULT_CLOCK=-3600)
    crew.start(1, FAULT_CLOCK=3600)
    assert [code for code, _ in crew.ends()] == [0, 0]
    assert all(outcomes(document) == ["completed"] for document in crew.finish())


def test__crowd__budget_exact_and_every_trial_once(crew):
    crew.budget = 18
    crew.start(3, FAULT_STEP_S=0.005)
    assert [code for code, _ in crew.ends()] == [0] * 3
    assert all(outcomes(document) == ["completed"] for document in crew.finish())


def test__SQLite_write_lock_held__past_the_lease__no_error_reaches_a_trial(tmp_path, sqlite_crew):
    crew = sqlite_crew
    crew.start(1, FAULT_STEP_S=0.1)
    crew.wait_for_trials(1)
    with closing(connect(tmp_path / "search.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(LEASE_S + 1)
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
