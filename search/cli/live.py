"""The live view of `search run` on a terminal: two bars and the leaderboard, drawn in place."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from search.cli.numbers import decimals
from search.cli.output import notes_console
from search.cli.pace import Pace
from search.cli.standings import standings
from search.cli.watching import Watcher, ending, heading
from search.rows import FINAL_STATES

if TYPE_CHECKING:
    from search.observer import StudyStart, TrialStart
    from search.rows import TrialRow

BAR_WIDTH = 28
SHOWN = 8


class LiveWatcher(Watcher):
    """Draws bars with rate and time left for trials and steps, and the leaderboard so far."""

    start: "StudyStart"
    pace: Pace
    live: Live | None = None
    trial: "TrialStart | None" = None
    reading: str = ""

    def study_started(self, start: "StudyStart") -> None:
        """Take the lower part of the screen; one study may follow another."""
        self.close()
        self.start, self.trial = start, None
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
        """Show the trial in hand."""
        self.trial, self.reading = trial, ""
        self.pace.trial_started()

    def progress(self, step: int, steps: int) -> None:
        """Move the lower bar."""
        self.pace.progress(step, steps)

    def validation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show the newest reading."""
        value = metrics.get(self.start.objective)
        self.reading = f"{self.start.objective} {decimals(value)} at step {step}"

    def trial_finished(self, row: "TrialRow") -> None:
        """Put the trial into the leaderboard; one that went wrong also gets a line that stays."""
        self.pace.trial_ended(final=row.state in FINAL_STATES)
        self.trial = None
        self.rows = [other for other in self.rows if other.id != row.id] + [row]
        if row.state != "completed":
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
        from search.budget import duration_words

        pace = self.pace
        grid = Table.grid(padding=(0, 2, 0, 0))
        left = f"{duration_words(pace.left_s)} left" if pace.left_s is not None else ""
        grid.add_row("trials", _bar(pace.share), self._trials_done(), self._trial_rate(), left)
        if self.trial is None or not pace.steps:
            grid.add_row("steps", _bar(0.0), "preparing", "", "")
            return grid
        done = f"{pace.step} of {pace.steps}"
        if pace.step == pace.steps:
            grid.add_row("steps", _bar(1.0), done, "measuring", "")
            return grid
        rate = f"{pace.steps_per_s:.3g} a second" if pace.steps_per_s else ""
        rest = f"{duration_words(pace.steps_left_s)} left" if pace.steps_left_s else ""
        grid.add_row("steps", _bar(pace.in_hand), done, rate, rest)
        return grid

    def _in_hand(self) -> Text:
        trial = self.trial
        if trial is None:
            return Text()
        repeat = f", seed {trial.seed}" if trial.seed_index else ""
        reading = f": {self.reading}" if self.reading else ""
        return Text(f"        {trial.phase} {trial.spec.code}{repeat}{reading}")

    def _trials_done(self) -> str:
        if self.start.budget.unit == "trials":
            return f"{self.pace.n_done} of {int(self.start.budget.amount)}"
        return str(self.pace.n_done)

    def _trial_rate(self) -> str:
        from search.report.wording import time_text

        return f"{time_text(self.pace.trial_s)} each" if self.pace.trial_s else ""

    def _board(self) -> Table:
        from search.report.wording import scaled, time_text

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


def _bar(share: float | None) -> ProgressBar:
    """A bar; one that cannot tell how far it is pulses."""
    if share is None:
        return ProgressBar(total=None, pulse=True, width=BAR_WIDTH)
    return ProgressBar(total=1.0, completed=share, width=BAR_WIDTH)
