"""Several workers in one process, a thread and a training process each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from search.engine.stopping import StopFlag

LOOK_S = 0.2


def work_together(jobs: Sequence[Callable[[], object]], stop: StopFlag) -> None:
    """Runs jobs at once until all have ended; one alone runs in this thread.

    Args:
        jobs: What each worker does; they heed `stop`.
        stop: Asked for when one of them breaks, so that the others end in good order too.

    Raises:
        KeyboardInterrupt: A second Ctrl-C; every trial in hand went back to the queue.
        BaseException: What the first job that broke raised, after all have ended.
    """
    if len(jobs) == 1:
        jobs[0]()
        return
    broken: list[BaseException] = []

    def run(job: Callable[[], object]) -> None:
        try:
            job()
        except KeyboardInterrupt:
            pass  # How a job ends that was told to end at once.
        except BaseException as error:
            broken.append(error)
            stop.ask("another worker of this process broke")

    threads = [
        threading.Thread(target=run, args=(job,), name=f"slot-{number}")
        for number, job in enumerate(jobs)
    ]
    for thread in threads:
        thread.start()
    try:
        wait_for(threads)
    except KeyboardInterrupt:
        stop.ask_at_once()
        wait_for(threads)
        raise
    if broken:
        raise broken[0]


def wait_for(threads: Sequence[threading.Thread]) -> None:
    """Waits for threads such that signals are heard meanwhile."""
    for thread in threads:
        while thread.is_alive():
            thread.join(LOOK_S)
