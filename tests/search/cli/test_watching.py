"""The three ways in which a run is shown, told a made-up run with a clock of its own."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
import store_factory
from rich.console import Console

from search.cli import live
from search.cli.live import LiveWatcher
from search.cli.pace import Pace
from search.cli.standings import standings
from search.cli.watching import JsonWatcher, PlainWatcher, heading
from search.engine.observer import RunOutcome, StudyStart, TrialStart
from search.rows import TrialRow
from search.spec.budget import Budget


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class NoRows:
    """A store in which the study has no trial yet."""

    def rows(self, study: int, *, curves: bool) -> list[TrialRow]:
        return []


def start(budget: str = "4") -> StudyStart:
    return StudyStart(
        name="demo",
        study_id=1,
        store="search.db",
        budget=Budget.parse(budget),
        spent=0.0,
        n_trials=0,
        space_size=25,
        objective="loss",
        unit="nats",
        direction="minimize",
        steps=600,
    )


def trial(number: int, notation: str) -> TrialStart:
    return TrialStart(
        trial_id=number + 1,
        number=number,
        phase="search",
        role=None,
        spec=store_factory.encoder_spec(notation),
        seed=0,
        seed_index=0,
        attempt=1,
    )


def row(number: int, code: str, loss: float | None, **changes: Any) -> TrialRow:
    made = TrialRow(
        id=number + 1,
        study="demo",
        number=number,
        phase="search",
        state="completed" if loss is not None else "failed",
        arch_id=code,
        code=code,
        notation=code,
        selection={} if loss is None else {"loss": loss, "accuracy": 0.25},
        params=50_000,
        latency_s=0.004,
        seconds=30.0,
        error=None if loss is not None else "RuntimeError: no such filter",
    )
    return replace(made, **changes)


def play(watcher: Any, clock: Clock) -> None:
    """Two trials of 30 s each, the second one fails."""
    watcher.study_started(start())
    first = trial(0, "attention*2")
    watcher.trial_started(first)
    for step in (1, 300, 600):
        clock.now += 10
        watcher.progress(first, step, 600)
    watcher.validation(first, 600, {"loss": 2.5})
    watcher.trial_finished(row(0, "AA", 2.5))
    watcher.message("a word")
    watcher.trial_started(trial(1, "sepconv*2"))
    clock.now += 30
    watcher.trial_finished(row(1, "SS", None))


OUTCOME = RunOutcome(
    study="demo",
    study_id=1,
    reason="budget",
    message="done",
    exit_code=0,
    started=2,
    completed=1,
    failed=1,
    n_trials=2,
)


def test__heading__one_architecture_and_one_trial__in_the_singular() -> None:
    said = heading(replace(start("4"), space_size=1, n_trials=1))
    assert said.startswith("study demo: 1 architecture, loss in nats")
    assert "budget 4 trials, 1 trial before; " in said


def test__plain__a_run__one_line_a_trial(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    watcher = PlainWatcher(NoRows(), clock)
    play(watcher, clock)
    watcher.finished(OUTCOME)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "study demo: 25 architectures, loss in nats, lower is better; budget 4 trials; "
        "results in search.db",
        "  trial 0 AA: step 600 of 600",
        "1/4  search    AA  loss 2.5000  accuracy 0.2500  30 s  2 min left",
        "a word",
        "2/4  search    SS  failed: RuntimeError: no such filter  60 s left",
    ]


def test__json__a_run__one_document_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    watcher = JsonWatcher(NoRows(), clock)
    play(watcher, clock)
    watcher.finished(OUTCOME)
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == [
        *("study_started", "trial_started", "progress", "progress", "progress", "validation"),
        *("trial_finished", "message", "trial_started", "trial_finished", "finished"),
    ]
    assert events[0]["budget"] == "4 trials"
    assert events[1]["notation"] == "attention*2"
    assert events[6]["trial"]["selection"]["loss"] == 2.5
    assert events[-1]["message"] == "done"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=30)
    monkeypatch.setattr(live, "notes_console", lambda: console)
    return console


def drawn(watcher: LiveWatcher) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(watcher.render())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test__live__in_a_trial__bars_rate_time_left_and_leaderboard(screen: Console) -> None:
    clock = Clock()
    with LiveWatcher(NoRows(), clock) as watcher:
        watcher.study_started(start())
        first = trial(0, "attention*2")
        watcher.trial_started(first)
        assert "preparing" in drawn(watcher)
        clock.now += 10
        watcher.progress(first, 100, 600)
        clock.now += 10
        watcher.progress(first, 300, 600)
        watcher.validation(first, 300, {"loss": 2.75})
        text = drawn(watcher)
        assert "0 of 4" in text
        assert "300 of 600" in text
        assert "20 a second" in text
        assert "15 s left" in text
        assert "2 min left" in text
        assert "search AA: loss 2.7500 at step 300" in text
        watcher.trial_finished(row(0, "AA", 2.5))
        watcher.trial_finished(row(1, "SS", None))
        text = drawn(watcher)
        assert "2 of 4" in text
        assert "2.5000" in text
    assert isinstance(screen.file, io.StringIO)
    stays = screen.file.getvalue()
    assert "failed: RuntimeError: no such filter" in stays


def test__live__two_trials_in_hand__a_bar_and_a_line_each(screen: Console) -> None:
    clock = Clock()
    with LiveWatcher(NoRows(), clock) as watcher:
        watcher.study_started(start())
        first, second = trial(0, "attention*2"), trial(1, "sepconv*2")
        for each in (first, second):
            watcher.trial_started(each)
        watcher.progress(first, 300, 600)
        watcher.progress(second, 150, 600)
        assert watcher.pace.in_hand == 0.75
        text = drawn(watcher)
        for shown in ("300 of 600", "150 of 600", "search AA", "search SS"):
            assert shown in text
        watcher.trial_finished(row(0, "AA", 2.5))
        text = drawn(watcher)
        assert "search AA" not in text
        assert "150 of 600" in text


def test__live__an_error__gives_the_screen_back(screen: Console) -> None:
    watcher = LiveWatcher(NoRows(), Clock())

    def break_off() -> None:
        with watcher:
            watcher.study_started(start())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()
    assert watcher.live is None


@pytest.mark.parametrize(
    ("budget", "share", "left"), [("4", 0.375, 100.0), ("2m", 0.5, 60.0), ("1e12flop", None, None)]
)
def test__pace__one_and_a_half_trials_in_a_minute__share_and_time_left(
    budget: str, share: float | None, left: float | None
) -> None:
    clock = Clock()
    pace = Pace(Budget.parse(budget), 0.0, 0, clock)
    pace.trial_started(1)
    clock.now += 40
    pace.trial_ended(1)
    pace.trial_started(2)
    pace.progress(2, 1, 100)
    clock.now += 20
    pace.progress(2, 50, 100)
    assert pace.share == share
    assert pace.left_s == (None if left is None else pytest.approx(left))
    assert pace.hands[2].steps_per_s == pytest.approx(49 / 20)
    assert pace.hands[2].steps_left_s == pytest.approx(50 * 20 / 49)


def test__plain__trial_back_in_the_queue__not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = PlainWatcher(NoRows(), Clock())
    watcher.study_started(start())
    watcher.trial_started(trial(0, "attention*2"))
    watcher.trial_finished(row(0, "AA", None, state="queued", error=None, reason="interrupted"))
    assert capsys.readouterr().err.splitlines()[-1] == "0/4  search    AA  queued: interrupted"


def test__pace__beginning_of_a_first_trial__says_nothing_yet() -> None:
    clock = Clock()
    pace = Pace(Budget.parse("4"), 0.0, 0, clock)
    pace.trial_started(1)
    clock.now += 10
    pace.progress(1, 1, 100)
    assert (pace.trial_s, pace.left_s) == (None, None)


def test__pace__trial_promoted_from_a_rung__counts_once() -> None:
    pace = Pace(Budget.parse("4"), 0.0, 0, Clock())
    for promoted in (False, True):
        pace.trial_started(1, promoted=promoted)
        pace.progress(1, 50, 100)
        assert pace.share == (0.25 if promoted else 0.125)
        pace.trial_ended(1)
        assert (pace.n_done, pace.share) == (1, 0.25)


def test__pace__continued_study__counts_what_was_there() -> None:
    clock = Clock()
    by_trials = Pace(Budget.parse("10"), 6.0, 6, clock)
    by_time = Pace(Budget.parse("100s"), 60.0, 6, clock)
    assert (by_trials.share, by_trials.left_s) == (0.6, None)
    assert (by_time.share, by_time.left_s) == (0.6, 40.0)


@pytest.mark.parametrize(
    ("direction", "order"), [("minimize", ["SS", "AA"]), ("maximize", ["AA", "SS"])]
)
def test__standings__repeats__mean_by_architecture_best_first(
    direction: str, order: list[str]
) -> None:
    rows = [
        row(0, "AA", 3.0),
        row(1, "SS", 2.0),
        row(2, "SS", 3.5, seed_index=1),
        row(3, "BB", None),
        row(4, "MM", 1.0, state="running"),
    ]
    found = standings(rows, "loss", direction)
    assert [standing.code for standing in found] == order
    assert {standing.code: (standing.mean, standing.n) for standing in found} == {
        "AA": (3.0, 1),
        "SS": (2.75, 2),
    }
