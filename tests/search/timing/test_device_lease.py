"""Real processes that share a device, and one at a time that has it alone."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from fault_trials import trial_config

from search.messages import Progress, Warned
from search.timing.device_lease import DeviceLease, machine_name
from search.training import trial

ROOT = Path(__file__).parents[3]

TRAINS = """
import sys, time
from pathlib import Path
from search.timing.device_lease import DeviceLease
folder, looks = Path(sys.argv[1]), sys.argv[2] == "looks"
with DeviceLease("cpu", folder) as lease, open(folder / sys.argv[3], "wb", 0) as steps:
    print("begun", flush=True)
    while True:
        steps.write(b".")
        time.sleep(0.001)
        if looks:
            lease.give_way(lambda: None, lambda: False)
"""

MEASURES = """
import sys, time
from pathlib import Path
from search.timing.device_lease import DeviceLease
with DeviceLease("cpu", Path(sys.argv[1])) as lease, lease.alone() as is_alone:
    print("begun", is_alone, flush=True)
    time.sleep(600)
"""


@contextmanager
def process(script, *arguments):
    """A process that has begun; killed at the end."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as started:
        try:
            assert started.stdout.readline().startswith("begun")
            yield started
        finally:
            started.kill()


def size(path):
    return path.stat().st_size


def wait_for_steps(path, more=2):
    before, end = size(path), time.monotonic() + 60
    while size(path) < before + more:
        assert time.monotonic() < end, "no step was made"
        time.sleep(0.005)


def test__alone__two_processes_train__both_wait_meanwhile_and_go_on_afterwards(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with (
        process(TRAINS, tmp_path, "looks", "first"),
        process(TRAINS, tmp_path, "looks", "second"),
    ):
        for _ in range(3):
            wait_for_steps(first)
            wait_for_steps(second)
            with DeviceLease("cpu", tmp_path) as lease, lease.alone() as is_alone:
                assert is_alone
                before = size(first), size(second)
                time.sleep(0.05)
                assert (size(first), size(second)) == before
        wait_for_steps(first)
        wait_for_steps(second)


def test__alone__a_training_that_never_looks__measured_beside_it_after_the_wait(tmp_path):
    with (
        process(TRAINS, tmp_path, "never", "steps"),
        DeviceLease("cpu", tmp_path, measure_wait_s=0.05) as lease,
        lease.alone() as is_alone,
    ):
        assert not is_alone
        wait_for_steps(tmp_path / "steps")


def test__alone__other_device__waits_for_nobody(tmp_path):
    with (
        process(TRAINS, tmp_path, "never", "steps"),
        DeviceLease("cuda-0", tmp_path, measure_wait_s=0.0) as lease,
        lease.alone() as is_alone,
    ):
        assert is_alone


def test__lease__its_holder_is_killed__the_others_go_on(tmp_path):
    with process(MEASURES, tmp_path) as measures:
        with DeviceLease("cpu", tmp_path, measure_wait_s=0.05, train_wait_s=0.05) as lease:
            # The wait to begin had its end, and so had this one.
            with lease.alone() as is_alone:
                assert not is_alone
            measures.kill()
            measures.wait()
        with DeviceLease("cpu", tmp_path) as lease, lease.alone() as is_alone:
            assert is_alone


def test__give_way__the_other_one_is_stuck__waits_for_it_once_only(tmp_path):
    lease = DeviceLease("cpu", tmp_path, train_wait_s=0.05)
    stuck = DeviceLease("cpu", tmp_path, measure_wait_s=0.0)
    with lease, stuck, stuck.alone():
        assert lease.give_way(lambda: None, lambda: False)
        assert not lease.give_way(lambda: None, lambda: False)


def test__give_way__asked_to_stop__waits_no_longer(tmp_path):
    lease, stuck = DeviceLease("cpu", tmp_path), DeviceLease("cpu", tmp_path, measure_wait_s=0.0)
    with lease, stuck, stuck.alone():
        assert lease.give_way(lambda: None, lambda: True)


def test__lease__folder_cannot_be_made__nobody_waits_and_nothing_counts_as_alone(tmp_path):
    (tmp_path / "file").touch()
    with DeviceLease("cpu", tmp_path / "file") as lease:
        assert not lease.give_way(lambda: None, lambda: False)
        with lease.alone() as is_alone:
            assert not is_alone


def test__machine_name__processor__the_same_in_every_process():
    assert machine_name("cpu") == "cpu"


@pytest.fixture
def lease_of_trials(tmp_path, monkeypatch):
    """Trials of this process share a device of their own."""
    monkeypatch.setattr(
        trial, "DeviceLease", partial(DeviceLease, folder=tmp_path, measure_wait_s=0.0)
    )
    return partial(DeviceLease, "cpu", tmp_path)


def test__run_trial__another_wants_to_measure__makes_no_step_meanwhile(faults, lease_of_trials):
    steps, seen = [], []
    is_closed = threading.Event()

    def measure():
        with lease_of_trials() as lease:
            wait = lease._wait

            def told(file, how, end):
                is_first = not is_closed.is_set()
                taken = wait(file, how, end)
                if is_first:
                    is_closed.set()
                return taken

            lease._wait = told
            with lease.alone() as is_alone:
                seen.append((is_alone, len(steps)))
                time.sleep(0.05)
                seen.append((is_alone, len(steps)))

    other = threading.Thread(target=measure)

    def report(message):
        if isinstance(message, Progress):
            steps.append(message.step)
            if message.step == 3:
                other.start()
                assert is_closed.wait(60)

    result = trial.run_trial(trial_config(faults), report=report, should_stop=lambda: None)
    other.join()
    assert seen == [(True, 3), (True, 3)]
    assert steps == list(range(1, 9))
    assert result.outcome == "completed"
    assert "latency" not in result.environment


def test__run_trial__device_not_alone__latency_is_marked(faults, lease_of_trials):
    told = []
    with lease_of_trials():
        result = trial.run_trial(trial_config(faults), report=told.append, should_stop=lambda: None)
    assert result.costs.latency_s is not None
    assert result.environment["latency"] == "measured beside other trainings"
    assert [message.text for message in told if isinstance(message, Warned)] == [
        "latency was measured beside other trainings on the same device"
    ]
