"""What watches `search run`: plain lines for logs, JSON lines for programs."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from search.cli.numbers import decimals
from search.cli.output import json_text, note, write
from search.cli.pace import Pace
from search.engine.observer import RunObserver
from search.rows import FINAL_STATES

if TYPE_CHECKING:
    from search.engine.observer import RunOutcome, StudyStart, TrialStart
    from search.rows import TrialRow
    from search.store.repo import Store

EVERY_S = 30.0
PHASE_WIDTH = 8


class Watcher(RunObserver):
    """An observer that also ends in good order when the run raises.

    Args:
        store: Where the trials that were there before are read from.
        clock: Monotonic seconds.
    """

    def __init__(self, store: "Store", clock: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self.clock = clock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the screen."""

    def pace_of(self, start: "StudyStart", rows: "list[TrialRow]") -> Pace:
        """Start to measure the run's pace."""
        ended = sum(row.state in FINAL_STATES for row in rows)
        return Pace(start.budget, start.spent, ended, self.clock)


class PlainWatcher(Watcher):
    """One line a trial, on standard error; a sign of life every half minute."""

    start: "StudyStart"
    pace: Pace

    def study_started(self, start: "StudyStart") -> None:
        """Say what begins."""
        self.start = start
        self.pace = self.pace_of(start, self.store.rows(start.study_id, curves=False))
        self.said_at = self.clock()
        note(heading(start))

    def trial_started(self, trial: "TrialStart") -> None:
        """Take note."""
        is_promoted = trial.promoted_from is not None
        self.pace.trial_started(trial.trial_id, promoted=is_promoted)

    def progress(self, trial: "TrialStart", step: int, steps: int) -> None:
        """Give a sign of life in a long trial."""
        self.pace.progress(trial.trial_id, step, steps)
        if self.clock() - self.said_at < EVERY_S:
            return
        self.said_at = self.clock()
        note(f"  trial {trial.number} {trial.spec.code}: step {step} of {steps}")

    def trial_finished(self, row: "TrialRow") -> None:
        """Say how the trial ended."""
        self.pace.trial_ended(row.id, final=row.state in FINAL_STATES)
        self.said_at = self.clock()
        note(ending(row, self.start, self.pace))

    def message(self, text: str) -> None:
        """Pass it on."""
        note(text)


class JsonWatcher(Watcher):
    """One JSON document a line on standard output; progress at most once a second."""

    said_at = float("-inf")

    def say(self, event: str, **facts: Any) -> None:
        """Print one line at once."""
        write(json_text({"event": event, **facts}, indent=None), flush=True)

    def study_started(self, start: "StudyStart") -> None:
        """Say what begins."""
        self.say("study_started", **{**vars(start), "budget": str(start.budget)})

    def trial_started(self, trial: "TrialStart") -> None:
        """Say which architecture is trained."""
        spec = trial.spec
        facts = {name: value for name, value in vars(trial).items() if name != "spec"}
        arch = {"arch_id": spec.arch_id, "code": spec.code, "notation": spec.notation}
        self.say("trial_started", **facts, **arch)

    def progress(self, trial: "TrialStart", step: int, steps: int) -> None:
        """Say how far the trial is."""
        if self.clock() - self.said_at >= 1.0 or step == steps:
            self.said_at = self.clock()
            self.say("progress", trial=trial.number, step=step, steps=steps)

    def validation(self, trial: "TrialStart", step: int, metrics: Mapping[str, float]) -> None:
        """Say what was read."""
        self.say("validation", trial=trial.number, step=step, metrics=metrics)

    def trial_finished(self, row: "TrialRow") -> None:
        """Give the whole row."""
        self.say("trial_finished", trial=row)

    def message(self, text: str) -> None:
        """Pass it on."""
        self.say("message", text=text)

    def finished(self, outcome: "RunOutcome") -> None:
        """Say how the run ended."""
        self.say("finished", **vars(outcome))


def heading(start: "StudyStart") -> str:
    """What a run is about, in one line."""
    from search.wording import plural

    good = "lower" if start.direction == "minimize" else "higher"
    unit = f" in {start.unit}" if start.unit else ""
    before = f", {plural(start.n_trials, 'trial')} before" if start.n_trials else ""
    architectures = plural(start.space_size, "architecture")
    return (
        f"study {start.name}: {architectures}, {start.objective}{unit}, "
        f"{good} is better; budget {start.budget}{before}; results in {start.store}"
    )


def ending(row: "TrialRow", start: "StudyStart", pace: Pace) -> str:
    """How a trial ended, in one line."""
    from search.spec.budget import duration_words
    from search.wording import time_text

    width = len(str(int(start.budget.amount))) if start.budget.unit == "trials" else 3
    total = f"/{int(start.budget.amount)}" if start.budget.unit == "trials" else ""
    words = [f"{pace.n_done:>{width}}{total}", f"{row.phase:<{PHASE_WIDTH}}", row.code or "-"]
    if row.state == "completed":
        names = [start.objective, *(n for n in row.selection if n != start.objective)]
        words += [f"{name} {decimals(row.selection.get(name))}" for name in names]
        took = "reused" if row.reused_from is not None else time_text(row.seconds)
        words.append(took)
    else:
        words.append(f"{row.state}: {row.error or row.reason or 'no reason given'}")
    left = pace.left_s
    if left and row.state in FINAL_STATES:
        words.append(f"{duration_words(left)} left")
    return "  ".join(words)
