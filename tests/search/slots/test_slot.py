import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fault_trials import trial_config

from search.errors import InputError
from search.messages import PlanTiming, Progress, Report, TrialFailure
from search.slots.slot import Slot
from search.training.trial import run_trial


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.fixture(scope="module")
def slot(faults):
    with Slot("cpu", 1, faults / "logs") as slot:
        yield slot


def test__slot__trial__gives_bitwise_the_result_of_the_same_trial_in_process(faults, slot):
    told = []
    config = trial_config(faults, splits=("selection", "test"), p=0.1)
    child = slot.run(config, told.append, lambda: None)
    here = run_trial(config, report=lambda message: None, should_stop=lambda: None)
    assert child.evaluations == here.evaluations
    assert child.proof == here.proof
    assert [m.step for m in told if isinstance(m, Report) and m.split == "selection"] == [4, 8]
    assert [m.step for m in told if isinstance(m, Progress)][-1] == 8


def test__slot__two_trials__run_in_one_warm_process(faults, slot):
    slot.run(trial_config(faults), lambda message: None, lambda: None)
    pid = slot._child.process.pid
    result = slot.run(trial_config(faults), lambda message: None, lambda: None)
    assert slot._child.process.pid == pid
    assert result.environment["threads"] == "1"


def test__slot__output_of_a_trial__goes_to_the_log(faults, slot, capfd):
    slot.run(trial_config(faults, "talks"), lambda message: None, lambda: None)
    log = slot.log.read_text()
    assert "a word on standard output" in log
    assert "a word from native code" in log
    assert capfd.readouterr() == ("", "")


def test__slot__plan__times_steps(faults, slot):
    plan = slot.plan(trial_config(faults), 6)
    assert isinstance(plan, PlanTiming)
    assert plan.step_s > 0


def test__slot__child__has_a_session_of_its_own_and_sees_no_gpu(faults, slot):
    slot.start()
    pid = slot._child.process.pid
    assert os.getsid(pid) == pid != os.getsid(0)
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert b"CUDA_VISIBLE_DEVICES=" in environment
    assert b"OMP_NUM_THREADS=1" in environment


def test__slot__sigterm_to_the_child__ends_the_trial_at_a_step_and_not_the_process(faults, slot):
    sent = []

    def on_message(message):
        if not sent:
            sent.append(os.kill(slot._child.process.pid, signal.SIGTERM))

    config = trial_config(faults, "slow", at=1, training={"steps": 10_000, "validations": 1})
    result = slot.run(config, on_message, lambda: None)
    assert (result.outcome, result.reason) == (
        "stopped",
        "the training process was told to end (SIGTERM)",
    )
    again = slot.run(trial_config(faults), lambda message: None, lambda: None)
    assert again.outcome == "completed"


def test__slot__spec_that_the_child_cannot_read__is_the_trials_failure(faults, slot):
    config = trial_config(faults)
    mixer = config.spec.blocks[0].mixer.model_copy(update={"kind": "faults.nowhere"})
    block = config.spec.blocks[0].model_copy(update={"mixer": mixer})
    spec = config.spec.model_copy(update={"blocks": (block,)})
    broken = config.model_copy(update={"spec": spec})
    outcome = slot.run(broken, lambda message: None, lambda: None)
    assert isinstance(outcome, TrialFailure)
    assert outcome.cause == "error"
    assert "faults.nowhere" in outcome.message


def test__slot__grown_child__is_replaced(faults, slot):
    slot.run(trial_config(faults), lambda message: None, lambda: None)
    slot.run(trial_config(faults, "grows"), lambda message: None, lambda: None)
    assert slot.resident_bytes > 300 << 20
    assert slot._child is None


def test__slot__nothing_heard__hung_by_the_clock_and_killed(faults):
    class FastClock:
        """A thousand seconds pass in one."""

        def __call__(self):
            return 1000 * time.monotonic()

    slot = Slot("cpu", 1, faults / "logs", hang_s=300.0, clock=FastClock())
    slot.start()
    pid = slot._child.process.pid
    # The child's imports alone take longer than 0.3 real seconds.
    outcome = slot.run(trial_config(faults), lambda message: None, lambda: None)
    assert (outcome.cause, outcome.message) == ("hung", "no sign of progress for 300 s")
    assert gone(pid)
    assert slot._child is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test__slot__exception_while_waiting__kills_the_child_and_comes_out(faults, error):
    def ask():
        raise error

    slot = Slot("cpu", 1, faults / "logs")
    slot.start()
    pid = slot._child.process.pid
    with pytest.raises(error):
        slot.run(trial_config(faults), lambda message: None, ask)
    assert gone(pid)
    assert not slot.log.exists()  # it would have been empty


def test__slot__parent_killed__child_ends(faults):
    code = f"""
        import time
        from search.slots.slot import Slot
        slot = Slot("cpu", 1, {str(faults / "logs")!r})
        slot.start()
        print(slot._child.process.pid, flush=True)
        time.sleep(600)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    wait_until(lambda: gone(pid))


def test__end_with__lifeline_closed__ends_a_process_that_keeps_the_interpreter():
    reader, writer = os.pipe()
    code = "import itertools, sys; from search.slots.child import end_with;"
    code += "end_with(int(sys.argv[1])); print('busy', flush=True); sum(itertools.repeat(0))"
    busy = subprocess.Popen(
        [sys.executable, "-c", code, str(reader)],
        pass_fds=(reader,),
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(reader)
    with busy:
        assert busy.stdout.readline() == "busy\n"
        assert busy.poll() is None
        os.close(writer)
        assert busy.wait(timeout=60) == -signal.SIGIO


@pytest.mark.slow
def test__slot__native_call_that_never_returns__killed_after_the_grace(faults):
    with Slot("cpu", 1, faults / "logs") as slot:
        slot.run(trial_config(faults), lambda message: None, lambda: None)
        pid = slot._child.process.pid
        started = time.monotonic()
        outcome = slot.run(
            trial_config(faults, "hangs_natively"),
            lambda message: None,
            lambda: "stop" if time.monotonic() - started > 2 else None,
            grace_s=0.5,
        )
    assert outcome.cause == "hung"
    assert "in hangs_natively" in outcome.traceback
    assert gone(pid)


@pytest.mark.slow
def test__slot__memory_limit__allocation_beyond_it_fails_as_out_of_memory(faults):
    with Slot("cpu", 1, faults / "logs", memory_limit_bytes=3 << 30) as slot:
        fine = slot.run(trial_config(faults), lambda message: None, lambda: None)
        config = trial_config(faults, "four_gigabytes")
        outcome = slot.run(config, lambda message: None, lambda: None)
    assert fine.outcome == "completed"
    assert outcome.cause == "out_of_memory"


def test__slot__unknown_device__refused_at_once(tmp_path):
    with pytest.raises(InputError, match="device 'tpu' is unknown"):
        Slot("tpu", 1, tmp_path)


def test__slot__import__leaves_torch_out():
    code = "import sys, search.slots.slot, search.slots.child; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
