"""The worker over a real store, with made-up trials in place of the training."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from own_study import Recorder, loss, own_study
from scripted import Scripted, failed, result

import search
from search.engine.assembly import make_claims
from search.engine.assignments import Ended
from search.engine.needs import strategy_of
from search.engine.preparing import Prepared
from search.engine.stopping import StopFlag
from search.errors import StoreError
from search.files import Files
from search.messages import Progress, Report
from search.settings import Settings
from search.spec.budget import Budget
from search.store.repo import Store
from search.store.retries import MOST_ATTEMPTS
from search.workers.worker import OUT_OF_TIME, Worker


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'search.db'}", lease_s=20.0) as opened:
        yield opened


def make_worker(store, runner, budget="4", *, stop=None, clock=time.monotonic, **local):
    study = own_study()
    row = store.ensure_study("s", study, {})
    amount = Budget.parse(budget)
    claims = make_claims(
        store, row, study, strategy_of(study), amount, store.register_worker(), Prepared("f")
    )
    return Worker(
        store,
        row.id,
        claims,
        runner,
        budget=amount,
        observer=Recorder(),
        stop=stop or StopFlag(),
        settings=Settings(**local),
        files=Files(Path(store.address.path).parent / "files"),
        clock=clock,
    )


def states(store):
    return [row.state for row in store.rows("s")]


def attempts(store, number):
    row = store.rows("s")[number]
    return [(a["outcome"], a["cause"]) for a in store.trial(row.id)["attempts"]]


@pytest.mark.parametrize("cause", ["error", "out_of_memory", "proof"])
def test__worker__fault_of_the_trial__is_final_and_the_others_go_on(store, cause):
    worker = make_worker(store, Scripted(None, failed(cause)))
    tally = worker.work()
    assert tally.started == 4
    assert states(store) == ["completed", "failed", "completed", "completed"]
    assert attempts(store, 1) == [("failed", cause)]
    stacks = [row.mixers for row in store.rows("s")]
    assert len(set(stacks)) == 4


@pytest.mark.parametrize("cause", ["hung", "lost"])
def test__worker__fault_of_the_machine__is_tried_again_up_to_the_limit(store, cause):
    once = Scripted(failed(cause))
    make_worker(store, once).work()
    assert states(store) == ["completed"] * 4
    assert [a.spec.arch_id for a in once.seen[:2]] == [once.seen[0].spec.arch_id] * 2
    assert len(once.seen) == 5


def test__worker__machine_never_well__fails_after_the_attempts_allowed(store):
    worker = make_worker(store, Scripted(*[failed("hung")] * MOST_ATTEMPTS["hung"]))
    worker.work()
    assert states(store) == ["failed", "completed", "completed", "completed"]
    assert len(attempts(store, 0)) == MOST_ATTEMPTS["hung"]
    assert worker.tally.started == 4


def test__worker__runner_that_breaks_its_promise__costs_one_trial(store):
    def explode(on_message, should_stop):
        raise ZeroDivisionError("unforeseen")

    make_worker(store, Scripted(explode)).work()
    assert states(store) == ["failed", "completed", "completed", "completed"]
    assert "ZeroDivisionError" in store.rows("s")[0].error


def test__worker__asked_to_stop__queues_the_trial_and_the_next_run_takes_it_up(store):
    stop = StopFlag()

    def stopped(on_message, should_stop):
        on_message(Report(step=1, split="selection", metrics={"loss": 2.0}))
        assert should_stop() is None
        stop.ask("interrupted")
        return result(outcome="stopped", reason=should_stop(), splits=())

    make_worker(store, Scripted(None, stopped), stop=stop).work()
    assert states(store) == ["completed", "queued"]
    assert attempts(store, 1) == [("preempted", None)]
    assert store.study("s").n_running == 0
    waiting = store.rows("s")[1]
    second = Scripted()
    worker = make_worker(store, second)
    worker.work()
    assert states(store) == ["completed"] * 4
    assert second.seen[0].spec.arch_id == waiting.arch_id
    assert worker.tally.started == 2


def test__run__another_worker_has_a_trial_in_hand__study_has_not_ended(store):
    study = own_study(n_layers=2)
    row = store.ensure_study("shared", study, {})
    claim = store.reserve(row.id, store.register_worker(), lambda counts: "search")
    mixers = tuple(study.space.choices[:2])
    store.commit(claim, study.encoder_spec(mixers), seed=0, seed_index=0, training_key="k")
    outcome = search.run(study, 3, store, name="shared", objective=loss)
    assert (outcome.exit_code, outcome.n_trials) == (0, 3)
    assert store.study("shared").state == "running"
    assert f"another worker holds trial {claim.number} " in outcome.message

    store.finish(claim, result())
    outcome = search.run(study, 4, store, name="shared", objective=loss)
    assert store.study("shared").state == "completed"
    assert "another worker" not in outcome.message


def test__worker__second_interrupt__leaves_the_same_state(store):
    def killed(on_message, should_stop):
        raise KeyboardInterrupt

    worker = make_worker(store, Scripted(killed))
    with pytest.raises(KeyboardInterrupt):
        worker.work()
    assert states(store) == ["queued"]
    assert attempts(store, 0) == [("preempted", None)]


def test__worker__interrupted_while_it_writes_the_result__queues_the_trial(store, monkeypatch):
    worker = make_worker(store, Scripted())

    def interrupted(claim, outcome):
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worker.work()
    assert states(store) == ["queued"]


def test__worker__time_is_up_in_mid_trial__keeps_its_partial_values_and_ends(store):
    clock = Clock()

    def slow(on_message, should_stop):
        on_message(Progress(step=1, steps=9))
        on_message(Report(step=1, split="selection", metrics={"loss": 2.5}))
        assert should_stop() is None
        clock.now += 3600
        assert should_stop() == OUT_OF_TIME
        return result(2.5, outcome="stopped", reason=OUT_OF_TIME, splits=("selection",))

    worker = make_worker(store, Scripted(None, slow), "30m", clock=clock)
    worker.work()
    rows = store.rows("s")
    assert [row.state for row in rows] == ["completed", "stopped"]
    assert rows[1].selection == {"loss": 2.5}
    assert rows[1].curve == ((1, 2.5),)
    assert worker.tally.started == 2


def test__worker__store_is_slow_to_read__time_budget_does_not_end_early(store, monkeypatch):
    clock = Clock()
    read = store.study

    def slow_study(study):
        clock.now += 5.0
        return read(study)

    def until_time_is_up(on_message, should_stop):
        began = clock.now
        while should_stop() is None:
            clock.now += 1.0
        assert clock.now - began >= 60.0 - 1.0  # the second is for what this test really takes
        return result(outcome="stopped", reason=OUT_OF_TIME, splits=())

    worker = make_worker(store, Scripted(until_time_is_up), "60s", clock=clock)
    monkeypatch.setattr(store, "study", slow_study)
    worker.work()
    assert states(store) == ["stopped"]


def test__worker__time_already_spent__starts_and_resumes_nothing(store):
    stop = StopFlag()

    def stopped(on_message, should_stop):
        time.sleep(0.05)
        stop.ask("interrupted")
        return result(outcome="stopped", reason="interrupted", splits=())

    make_worker(store, Scripted(stopped), "30m", stop=stop).work()
    assert states(store) == ["queued"]
    worker = make_worker(store, Scripted(), "0.01s")
    assert isinstance(worker.work().ended, Ended)
    assert (states(store), worker.tally.started) == (["queued"], 0)


def test__worker__lease_taken_by_another__its_result_changes_nothing(store, monkeypatch):
    beats = []

    def lost_lease(claim):
        beats.append(claim)

    def long(on_message, should_stop):
        deadline = time.monotonic() + 60
        while should_stop() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return result(outcome="stopped", reason=should_stop(), splits=())

    monkeypatch.setattr(store, "heartbeat", lost_lease)
    runner = Scripted(long)
    make_worker(store, runner, "1", beat_s=0.02).work()
    assert len(beats) >= 1
    assert states(store) == ["completed"]
    assert len(runner.seen) == 2


def test__worker__store_away_for_a_while__heartbeat_and_reports_survive(store, monkeypatch):
    calls = {"beat": 0, "report": 0}
    heartbeat, report = store.heartbeat, store.report

    def sometimes(name, call):
        def wrapped(*arguments):
            calls[name] += 1
            if calls[name] <= 2:
                raise StoreError("the database is locked")
            return call(*arguments)

        return wrapped

    monkeypatch.setattr(store, "heartbeat", sometimes("beat", heartbeat))
    monkeypatch.setattr(store, "report", sometimes("report", report))

    def busy(on_message, should_stop):
        for step in (1, 2, 3, 4):
            on_message(Report(step=step, split="selection", metrics={"loss": 5.0 - step}))
            time.sleep(0.05)
        deadline = time.monotonic() + 60
        while calls["beat"] < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert should_stop() is None
        return result()

    make_worker(store, Scripted(busy), "1", beat_s=0.02).work()
    [row] = store.rows("s")
    assert row.state == "completed"
    assert [step for step, _ in row.curve] == [1, 2, 3, 4]
    assert calls["beat"] >= 4
    assert threading.active_count() < 10


SCRIPT = """
import sys, time, search
def slow(architecture, seed, report):
    for step in range(2000):
        report(step, 1.0 + step)
        if step == 0:
            print("training", flush=True)
        time.sleep(0.02)
    return 1.0
outcome = search.run(objective=slow, budget=5, store=sys.argv[1], name="s")
print(outcome.message, flush=True)
sys.exit(outcome.exit_code)
"""


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT] * 2])
def test__run__signals_in_a_real_process__end_with_130_and_a_queued_trial(tmp_path, signals):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    url = f"sqlite:///{tmp_path / 'search.db'}"
    process = subprocess.Popen(
        [sys.executable, str(script), url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"SEARCH_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert process.stdout.readline() == "training\n"
    for number in signals:
        process.send_signal(number)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert "the same command continues" in output
    assert "Traceback" not in errors
    with Store.open(url) as store:
        assert states(store) == ["queued"]
        assert store.study("s").n_running == 0
        assert attempts(store, 0) == [("preempted", None)]
