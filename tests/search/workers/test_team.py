"""Several jobs of one process: they end together, whoever breaks, and a stop reaches all."""

import threading
import time

import pytest

from search.engine.stopping import TIME_IS_UP, StopFlag
from search.workers.team import work_together


def test__work_together__several__all_run_at_once():
    together = threading.Barrier(3, timeout=20)
    work_together([together.wait] * 3, StopFlag())
    assert not together.broken


def test__work_together__one_breaks__the_others_are_told_and_its_error_comes_out():
    stop = StopFlag()
    seen = []

    def breaks():
        raise ZeroDivisionError("made to break")

    def goes_on():
        while stop.check() is None:
            time.sleep(0.005)
        seen.append(stop.reason)

    with pytest.raises(ZeroDivisionError):
        work_together([goes_on, breaks, goes_on], stop)
    assert len(seen) == 2


def test__work_together__second_signal__every_job_ends_at_once(monkeypatch):
    stop = StopFlag()
    ended = []

    def deaf_to_politeness():
        try:
            while True:
                stop.check()
                time.sleep(0.005)
        except KeyboardInterrupt:
            ended.append(True)
            raise

    calls = []

    def interrupted_once(threads, wait_for=work_together.__globals__["wait_for"]):
        calls.append(len(threads))
        if len(calls) == 1:
            stop.interrupt()
            raise KeyboardInterrupt
        wait_for(threads)

    monkeypatch.setitem(work_together.__globals__, "wait_for", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        work_together([deaf_to_politeness] * 2, stop)
    assert ended == [True, True]


def test__stop_flag__at_its_time__is_set_by_itself_and_cuts_sleep_short():
    now = [0.0]
    stop = StopFlag(until=10.0, clock=lambda: now[0])
    assert stop.reason is None
    now[0] = 10.0
    assert stop.reason == TIME_IS_UP
    began = time.monotonic()
    stop.sleep(3600.0)
    assert time.monotonic() - began < 60.0
    stop.interrupt()
    assert stop.is_interrupted
