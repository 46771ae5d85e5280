"""`search worker`: train trials of the studies of a store until told to end."""

import os
import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.cli.options import DEFAULT_STORE, StoreOption
from search.cli.output import json_text, note, write
from search.engine.observer import RunObserver

if TYPE_CHECKING:
    from search.engine.observer import TrialStart
    from search.rows import TrialRow

SLURM_END = "SLURM_JOB_END_TIME"
"""Set by SLURM: seconds since 1970 at which it ends the job."""
SLURM_MARGIN_S = 60.0


ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="SEARCH_SERVER",
        metavar="URL",
        help="Work for `search serve` there, without a database.",
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="SEARCH_TOKEN",
        show_envvar=True,
        metavar="TOKEN",
        help="With --server: a token of role submit. Others see what stands on a command line; "
        "the variable is the better place.",
    ),
]


def worker(
    store: StoreOption = DEFAULT_STORE,
    server: ServerOption = None,
    token: TokenOption = None,
    study: Annotated[
        str | None,
        typer.Option("--study", metavar="NAME", help="Work on this study only."),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            "--slots", metavar="N", help="Trials at once; by default one, or one on each GPU."
        ),
    ] = None,
    gpus: Annotated[
        str | None,
        typer.Option("--gpus", metavar="0,1", help="Use these GPUs; by default all."),
    ] = None,
    slots_per_gpu: Annotated[
        int, typer.Option("--slots-per-gpu", metavar="N", help="Small trainings that share a GPU.")
    ] = 1,
    lasting: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TIME",
            help="Work for so long (45m, 4h), then save what is in hand and end; inside a SLURM "
            "job by default until a minute before its end.",
        ),
    ] = None,
    on: Annotated[
        Literal["here", "ray"],
        typer.Option("--on", help="Where: in this process, or in actors of a Ray cluster."),
    ] = "here",
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="A", help="With --on ray: the cluster's address."),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when no study has work.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document a line for programs.")
    ] = False,
) -> None:
    """Train trials of the studies of a store, whoever asked for them, until told to end.

    Start as many as there are machines, on one PostgreSQL store or for one service; any of them may
    be killed. Studies come from `search run` and from the service; each is worked on up to the
    budget last asked for.
    """
    from search.engine.stopping import StopFlag
    from search.errors import InterruptedRunError
    from search.settings import settings
    from search.workers.on_ray import pull_on_ray
    from search.workers.opening import open_for_work
    from search.workers.pull import pull

    stop = StopFlag(until=end_of(lasting))
    observer = JsonLines() if json else Lines()
    with open_for_work(store, server, token or None) as opened:
        if on == "ray":
            refuse_here_only(gpus=gpus, slots_per_gpu=slots_per_gpu)
            started = pull_on_ray(
                store,
                server=server,
                token=token or None,
                address=address,
                slots=slots,
                study=study,
                until_idle=until_idle,
                observer=observer,
                stop=stop,
            )
        else:
            started = pull(
                opened,
                settings(),
                study=study,
                slots=slots,
                gpus=gpu_numbers(gpus),
                slots_per_gpu=slots_per_gpu,
                until_idle=until_idle,
                observer=observer,
                stop=stop,
            )
    ended = f"{started} trial{'' if started == 1 else 's'} started here"
    if stop.is_interrupted:
        raise InterruptedRunError(f"interrupted; {ended}, nothing is lost")
    note(f"{stop.reason or 'no study has work'}; {ended}")


def refuse_here_only(*, gpus: str | None, slots_per_gpu: int) -> None:
    """Refuse options that choose devices, where Ray does.

    Raises:
        InputError: One of them was given.
    """
    from search.errors import InputError

    if gpus is not None or slots_per_gpu != 1:
        raise InputError("--gpus and --slots-per-gpu: Ray places the actors; leave them out")


def end_of(lasting: str | None) -> float:
    """Return the monotonic time at which the worker is to end.

    Raises:
        InputError: The option is no time.
    """
    from search.errors import InputError
    from search.spec.budget import Budget

    if lasting is not None:
        budget = Budget.parse(lasting)
        if budget.unit != "seconds":
            raise InputError(f"--for {lasting}: expected a time such as 45m or 4h")
        return time.monotonic() + budget.amount
    end = os.environ.get(SLURM_END, "")
    if not end.isdecimal():
        return float("inf")
    return time.monotonic() + float(end) - SLURM_MARGIN_S - time.time()


def gpu_numbers(text: str | None) -> list[int] | None:
    """Return the numbers in `--gpus`.

    Raises:
        InputError: It is no list of numbers.
    """
    from search.errors import InputError

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise InputError(f"--gpus {text}: expected numbers such as 0,1")
    return [int(part) for part in parts]


class Lines(RunObserver):
    """One line a trial, on standard error."""

    def trial_started(self, trial: "TrialStart") -> None:
        """Say what is trained."""
        again = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
        note(f"trial {trial.number} {trial.phase} {trial.spec.code}{again}")

    def trial_finished(self, row: "TrialRow") -> None:
        """Say how it ended."""
        from search.wording import time_text

        why = f": {row.error or row.reason}" if row.state != "completed" else ""
        took = f" in {time_text(row.seconds)}" if row.seconds else ""
        note(f"{row.study} trial {row.number} {row.code or '-'} {row.state}{took}{why}")

    def message(self, text: str) -> None:
        """Pass it on."""
        note(text)


class JsonLines(RunObserver):
    """One JSON document a line on standard output."""

    def trial_started(self, trial: "TrialStart") -> None:
        """Say what is trained."""
        self._say("trial_started", trial_id=trial.trial_id, code=trial.spec.code)

    def trial_finished(self, row: "TrialRow") -> None:
        """Give the whole row."""
        self._say("trial_finished", trial=row)

    def message(self, text: str) -> None:
        """Pass it on."""
        self._say("message", text=text)

    def _say(self, event: str, **facts: object) -> None:
        write(json_text({"event": event, **facts}, indent=None), flush=True)
