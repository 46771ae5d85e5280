"""The live view of `search run` on a terminal: bars and the leaderboard, drawn in place."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from search.cli.numbers import decimals
from search.cli.output import notes_console
from search.cli.pace import InHand, Pace
from search.cli.standings import standings
from search.cli.watching import Watcher, ending, heading
from search.rows import FINAL_STATES

if TYPE_CHECKING:
    from search.engine.observer import StudyStart, TrialStart
    from search.rows import TrialRow

BAR_WIDTH = 28
SHOWN = 8


class LiveWatcher(Watcher):
    """Draws bars with rate and time left, one for the run and one a trial, and the leaderboard."""

    start: "StudyStart"
    pace: Pace
    live: Live | None = None

    def study_started(self, start: "StudyStart") -> None:
        """Take the lower part of the screen; one study may follow another."""
        self.close()
        self.start = start
        self.trials: dict[int, TrialStart] = {}
        self.readings: dict[int, str] = {}
        self.rows = self.store.rows(start.study_id, curves=False)
        self.pace = self.pace_of(start, self.rows)
        console = notes_console()
        console.print(Text(heading(start)))
        self.live = Live(
            console=console,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            get_renderable=self.render,
        )
        self.live.start()

    def trial_started(self, trial: "TrialStart") -> None:
        """Show it among the trials in hand."""
        is_promoted = trial.promoted_from is not None
        self.pace.trial_started(trial.trial_id, promoted=is_promoted)
        self.trials[trial.trial_id] = trial

    def progress(self, trial: "TrialStart", step: int, steps: int) -> None:
        """Move its bar."""
        self.pace.progress(trial.trial_id, step, steps)

    def validation(self, trial: "TrialStart", step: int, metrics: Mapping[str, float]) -> None:
        """Show the newest reading."""
        value = decimals(metrics.get(self.start.objective))
        self.readings[trial.trial_id] = f": {self.start.objective} {value} at step {step}"

    def trial_finished(self, row: "TrialRow") -> None:
        """Put the trial into the leaderboard; one that went wrong also gets a line that stays."""
        self.trials.pop(row.id, None)
        self.readings.pop(row.id, None)
        self.pace.trial_ended(row.id, final=row.state in FINAL_STATES)
        self.rows = [other for other in self.rows if other.id != row.id] + [row]
        if row.state not in ("completed", "pruned"):
            self.message(ending(row, self.start, self.pace))

    def message(self, text: str) -> None:
        """Print a line that stays, above the live part if there is one."""
        console = notes_console() if self.live is None else self.live.console
        console.print(Text(text))

    def close(self) -> None:
        """Wipe the live part."""
        if self.live is not None:
            self.live.stop()
            self.live = None

    def render(self) -> Group:
        """Draw everything once."""
        return Group(self._bars(), self._in_hand(), Text(), self._board())

    def _bars(self) -> Table:
        from search.spec.budget import duration_words

        pace = self.pace
        grid = Table.grid(padding=(0, 2, 0, 0))
        left = f"{duration_words(pace.left_s)} left" if pace.left_s is not None else ""
        grid.add_row("trials", _bar(pace.share), self._trials_done(), self._trial_rate(), left)
        # Another trial may begin or end while this is drawn.
        hands = list(pace.hands.values())
        for hand in hands:
            grid.add_row("steps", *_steps(hand))
        if not hands:
            grid.add_row("steps", _bar(0.0), "preparing", "", "")
        return grid

    def _in_hand(self) -> Text:
        lines = []
        for trial in list(self.trials.values()):
            repeat = f", seed {trial.seed}" if trial.seed_index else ""
            reading = self.readings.get(trial.trial_id, "")
            lines.append(f"        {trial.phase} {trial.spec.code}{repeat}{reading}")
        return Text("\n".join(lines))

    def _trials_done(self) -> str:
        if self.start.budget.unit == "trials":
            return f"{self.pace.n_done} of {int(self.start.budget.amount)}"
        return str(self.pace.n_done)

    def _trial_rate(self) -> str:
        from search.wording import time_text

        return f"{time_text(self.pace.trial_s)} each" if self.pace.trial_s else ""

    def _board(self) -> Table:
        from search.wording import scaled, time_text

        best = standings(self.rows, self.start.objective, self.start.direction)
        board = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name, side in (
            ("#", "right"),
            ("layers", "left"),
            (f"{self.start.objective} on selection", "right"),
            ("runs", "right"),
            ("params", "right"),
            ("latency", "right"),
            ("", "left"),
        ):
            board.add_column(name, justify="right" if side == "right" else "left", no_wrap=True)
        for place, row in enumerate(best[:SHOWN], start=1):
            board.add_row(
                str(place),
                row.code,
                decimals(row.mean),
                str(row.n),
                scaled(row.params),
                time_text(row.latency_s),
                "baseline" if row.is_baseline else "",
            )
        if len(best) > SHOWN:
            board.caption = f"and {len(best) - SHOWN} more"
            board.caption_justify = "left"
        return board


def _steps(hand: InHand) -> "tuple[ProgressBar, str, str, str]":
    """How far a trial in hand is: bar, steps, rate, time left."""
    from search.spec.budget import duration_words

    if not hand.steps:
        return _bar(0.0), "preparing", "", ""
    done = f"{hand.step} of {hand.steps}"
    if hand.step == hand.steps:
        return _bar(1.0), done, "measuring", ""
    rate = f"{hand.steps_per_s:.3g} a second" if hand.steps_per_s else ""
    rest = f"{duration_words(hand.steps_left_s)} left" if hand.steps_left_s else ""
    return _bar(hand.share), done, rate, rest


def _bar(share: float | None) -> ProgressBar:
    """A bar; one that cannot tell how far it is pulses."""
    if share is None:
        return ProgressBar(total=None, pulse=True, width=BAR_WIDTH)
    return ProgressBar(total=1.0, completed=share, width=BAR_WIDTH)
