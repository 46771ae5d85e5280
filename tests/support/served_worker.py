"""The real command `search`, whose trainings are made up: they need no torch and take little time.

Started by nursery.py; the environment says what goes wrong, as in fault_worker.py.
"""

import os
import time

from fault_worker import STEPS, strike, value_of
from scripted import result

import search.workers.pull as module
from search import cli
from search.engine.preparing import Prepared
from search.messages import Progress, Report


class MadeUp:
    """A slot whose trainings bring what `value_of` says."""

    device = "cpu"
    threads = 1

    def run(self, assignment, *, on_message, should_stop):
        """Some steps of nothing."""
        strike("after_claim")
        value = value_of(assignment.spec.code, assignment.seed)
        for step in range(1, STEPS + 1):
            time.sleep(float(os.environ.get("FAULT_STEP_S", "0.02")))
            if (reason := should_stop()) is not None:
                return result(outcome="stopped", reason=reason, splits=())
            on_message(Progress(step=step, steps=STEPS))
            metrics = {"loss": value + STEPS - step}
            on_message(Report(step=step, split="selection", metrics=metrics))
            if step == STEPS // 2:
                strike("mid_step")
        return result(value)

    def close(self):
        """Nothing was opened."""


def make_slots(local, slots=None, **options):
    """As many as were asked for."""
    return [MadeUp() for _ in range(slots or 1)]


def main(*words: str) -> int:
    """Run the command; returns its exit code."""
    module.make_slots = make_slots
    module.slot_runner = lambda seat, *_: seat
    module.prepare = lambda study, cache_dir: Prepared("made up")
    try:
        cli.main(words)
    except SystemExit as end:
        return int(end.code or 0)
