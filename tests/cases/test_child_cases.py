"""One trial that breaks its training process does not touch the others."""

from pathlib import Path

import pytest
from fault_trials import faults_installed, trial_config

from search.messages import TrialFailure, TrialResult
from search.slots.slot import Slot


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    with faults_installed(tmp_path_factory.mktemp("faults")) as folder:
        yield folder


@pytest.fixture(scope="module")
def slot(faults):
    # One for all tests: a new process pays seconds for its imports.
    with Slot("cpu", 1, faults / "logs") as slot:
        yield slot


def run(slot, config, **options):
    return slot.run(config, lambda message: None, lambda: None, **options)


def test__C41__child__nan_trial__diverges_and_the_next_one_is_as_ever(faults, slot):
    first = run(slot, trial_config(faults))
    diverged = run(slot, trial_config(faults, "nan"))
    again = run(slot, trial_config(faults))
    assert diverged.outcome == "diverged"
    assert first.evaluations == again.evaluations


def test__C45__trial_in_flight__stopped_at_a_step_with_its_partial_values(faults, slot):
    reports = []
    config = trial_config(faults, "slow", at=1, training={"steps": 10_000, "validations": 5_000})
    outcome = slot.run(
        config, reports.append, lambda: "time is up" if len(reports) > 3 else None, grace_s=60
    )
    assert (outcome.outcome, outcome.reason) == ("stopped", "time is up")
    assert 0 < outcome.steps < 10_000
    assert outcome.evaluations["selection"]["loss"] > 0
    assert run(slot, trial_config(faults)).outcome == "completed"


def test__C44__twenty_trials__two_break_and_eighteen_finish_at_one_memory_level(faults, slot):
    broken = {3: "memory", 7: "raises"}
    outcomes, levels = {}, []
    for number in range(1, 21):
        outcomes[number] = run(slot, trial_config(faults, broken.get(number, "none"), seed=number))
        levels.append(slot.resident_bytes)
    causes = {n: o.cause for n, o in outcomes.items() if isinstance(o, TrialFailure)}
    assert causes == {3: "out_of_memory", 7: "error"}
    assert "no such filter" in outcomes[7].message
    finished = [o for o in outcomes.values() if isinstance(o, TrialResult)]
    assert [result.outcome for result in finished] == ["completed"] * 18
    assert max(levels) <= 1.05 * levels[0]


@pytest.mark.parametrize(
    ("fault", "cause", "message"),
    [
        ("exits", "error", "tried to exit (SystemExit: 3)"),
        ("segfault", "error", "crashed (SIGSEGV)"),
        pytest.param("os_exit", "error", "with exit code 7", marks=pytest.mark.slow),
        pytest.param("killed", "lost", "from outside (SIGKILL)", marks=pytest.mark.slow),
    ],
)
def test__C44__process_ended_by_a_trial__cause_recorded_and_the_next_trial_unharmed(
    faults, slot, fault, cause, message
):
    outcome = run(slot, trial_config(faults, fault))
    assert isinstance(outcome, TrialFailure)
    assert outcome.cause == cause
    assert message in outcome.message
    if cause == "error" and fault != "os_exit":
        assert f"in {fault}" in outcome.traceback
    assert run(slot, trial_config(faults)).outcome == "completed"


def members(group: int) -> list[int]:
    """The living processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test__C45__trial_that_never_returns__ended_within_the_grace_with_all_it_started(faults, slot):
    assert run(slot, trial_config(faults)).outcome == "completed"
    group = slot._child.process.pid
    asked = []

    def time_is_up():
        if len(members(group)) == 2 and not asked:
            asked.append(True)
        return "time budget used up" if asked else None

    config = trial_config(faults, "hangs_with_a_child")
    outcome = slot.run(config, lambda message: None, time_is_up, grace_s=1.0)
    assert outcome.cause == "hung"
    assert "within 1 s after a request to stop" in outcome.message
    assert "in hangs" in outcome.traceback
    assert members(group) == []
