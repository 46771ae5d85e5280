"""Each promise is kept by a mechanism: with that one broken, the same scenario breaks the promise.

Every test here runs a scenario of this folder with workers of which one part does not work, and
looks at the same list of promises. A list that stayed empty then would prove nothing elsewhere.
"""

import signal
import time
from contextlib import closing
from sqlite3 import connect

import pytest
from crew import PATIENT, SHORT
from flatness import growth


def test__lease_never_renewed__a_live_worker_loses_its_trial(crew):
    crew.sizes, go_on = SHORT, crew.folder / "go on"
    crew.start(1, FAULT_UNTIL=go_on, FAULT_BREAKS="lease_never_renewed")
    crew.wait_for_hands(1)
    crew.wait(crew.a_lease_ran_out, "its lease runs out")
    crew.start(1)
    crew.wait_for_trials(crew.budget)
    go_on.touch()
    crew.ends()
    assert "lost" in crew.broken(lost=0)


def test__fencing_ignored__a_suspended_worker_ends_the_trial_of_another(crew):
    crew.sizes = SHORT
    crew.start(1, FAULT_STEP_S=0.1, FAULT_BREAKS="fencing_ignored")
    suspended = crew.processes[0]
    crew.suspend(suspended)
    time.sleep(SHORT.lease_s)
    crew.start(1)
    crew.wait_for_trials(3)
    suspended.send_signal(signal.SIGCONT)
    crew.ends()
    assert "ended twice" in crew.broken()


def test__reaping_off__a_killed_workers_trial_runs_for_ever(crew):
    crew.start(1, FAULT="mid_step", FAULT_BREAKS="reaping_off")
    crew.ends()
    crew.start(1, FAULT_BREAKS="reaping_off")
    crew.ends()
    assert {"no end", "in hand", "study"} <= crew.broken()


def test__budget_checked_outside_the_claim__more_trials_than_the_budget(crew):
    crew.budget = 1
    crew.start(2, FAULT_BREAKS="budget_outside")
    crew.ends()
    assert "budget" in crew.broken()


def test__queue_read_before_it_is_taken__a_trial_is_run_twice(crew):
    crew.start(1, FAULT_STEP_S=0.2)
    crew.wait_for_hands(1)
    crew.processes[0].send_signal(signal.SIGTERM)
    crew.ends()
    crew.start(2, FAULT_BREAKS="queue_in_two_steps")
    crew.ends()
    assert "ended twice" in crew.broken()


def test__worker_clocks_rule__live_workers_lose_their_trials(crew):
    crew.sizes = PATIENT
    crew.start(1, FAULT_STEP_S=0.3, FAULT_CLOCK=-3600, FAULT_BREAKS="clock_of_the_worker")
    crew.suspend(crew.processes[0])
    crew.start(1, FAULT_CLOCK=3600, FAULT_BREAKS="clock_of_the_worker")
    crew.wait_for_trials(crew.budget - 1)
    assert "lost" in crew.broken(lost=0)


def test__signals_unheard__a_trial_stays_in_hand(crew):
    crew.start(1, FAULT_STEP_S=0.2, FAULT_BREAKS="signals_unheard")
    crew.wait_for_hands(1)
    crew.processes[0].send_signal(signal.SIGTERM)
    [(code, _)] = crew.ends()
    assert code == -signal.SIGTERM
    assert {"no end", "in hand", "study"} <= crew.broken()


def test__error_of_a_trial_comes_out__the_others_are_not_trained(crew):
    crew.start(1, FAULT_TRIAL="raises", FAULT_BREAKS="errors_come_out")
    [(code, said)] = crew.ends()
    assert (code, "ZeroDivisionError" in said) == (1, True)
    assert {"budget", "no end", "study"} <= crew.broken()


def test__locked_file_is_an_error__the_trial_is_lost(tmp_path, sqlite_crew):
    crew = sqlite_crew
    crew.start(1, FAULT_STEP_S=0.2, FAULT_BREAKS="lock_is_an_error")
    crew.wait_for_hands(1)
    with closing(connect(tmp_path / "search.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        [(code, _)] = crew.ends()
        other.execute("ROLLBACK")
    assert code == 3
    assert {"no end", "in hand", "study"} <= crew.broken()


def test__full_disk_unexplained__a_traceback_in_place_of_a_line(sqlite_crew):
    crew = sqlite_crew
    crew.start(1)
    crew.wait_for_trials(1)
    crew.processes[0].kill()
    crew.ends()
    crew.start(1, FAULT_PAGES=1, FAULT_BREAKS="full_disk_unexplained")
    [(code, said)] = crew.ends()
    assert code != 3
    assert "Traceback" in said


@pytest.mark.postgres
def test__results_dropped_while_the_server_is_away__their_trials_are_lost(server, begun):
    begun.start(2, FAULT_STEP_S=0.3, FAULT_BREAKS="spool_dropped")
    begun.wait_for_hands(2)
    server.stop("fast")
    begun.wait((begun.folder / "dropped").exists, "a result is dropped")
    server.start()
    begun.ends()
    assert begun.broken(lost=0) & {"lost", "no end"}


def test__files_left_open__the_worker_is_seen_to_grow(sqlite_crew):
    crew = sqlite_crew
    crew.budget, crew.layers = 40, 6
    crew.start(1, FAULT_STEP_S=0.002, FAULT_BREAKS="files_left_open")
    grown = growth(crew, 40)
    assert grown.files >= 15
    assert grown.bytes >= 15 << 20
