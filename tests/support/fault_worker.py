"""A worker process with made-up trials that take a little while, and a fault at a named point.

    python fault_worker.py URL BUDGET

The environment says what goes wrong, once over all processes that share `FAULT_FLAG`, a file that
must not exist yet:

FAULT            after_claim | mid_step | before_finish | after_finish: the process kills itself
FAULT_CLOCK      seconds by which this process's own clock is off
FAULT_PAGES      pages beyond which the SQLite file of this process cannot grow
FAULT_STEP_S     seconds that a step takes
FAULT_UNTIL      a file: no trial goes on in its midst before it exists
FAULT_LAYERS     layers of an architecture, 3 by default: the more, the larger the space
FAULT_TRIAL      raises | exits | nan | memory: what the one trial of a certain architecture does
FAULT_BREAKS     a mechanism of broken.py that does not work in this process
"""

import os
import signal
import sys
import time

from sqlalchemy import event
from sqlalchemy.engine import Engine

import search
from search.engine.observer import RunOutcome
from search.errors import SearchError
from search.store.repo import Store

STEPS = 6
CHOICES = ("attention", "sepconv", "average", "identity")
FAULTY = {"attention"}
"""The mixers of the architecture whose trial goes wrong: the reference, which is trained first."""


def value_of(code: str, seed: int) -> float:
    """What a training of an architecture brings: a pure function, so a test can check it."""
    return sum((place + 1) * ord(letter) for place, letter in enumerate(code)) / 1000 + seed / 7


def strike(point: str) -> None:
    """Kill this process if this is the point, and nobody was struck before."""
    if os.environ.get("FAULT") != point:
        return
    try:
        os.close(os.open(os.environ["FAULT_FLAG"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def wait() -> None:
    """Wait for the file that lets trials go on."""
    path = os.environ.get("FAULT_UNTIL")
    while path is not None and not os.path.exists(path):
        time.sleep(0.02)


def go_wrong() -> float:
    """What the faulty trial does."""
    match os.environ.get("FAULT_TRIAL"):
        case "raises":
            raise ZeroDivisionError("made to raise")
        case "exits":
            sys.exit("made to exit")
        case "memory":
            raise MemoryError
        case _:
            return float("nan")


def objective(architecture, seed, report):
    """Some steps of nothing."""
    strike("after_claim")
    kinds = {block.mixer.kind for block in architecture.blocks}
    if "FAULT_TRIAL" in os.environ and kinds == FAULTY:
        return go_wrong()
    value = value_of(architecture.code, seed)
    for step in range(1, STEPS + 1):
        time.sleep(float(os.environ.get("FAULT_STEP_S", "0.02")))
        report(step, value + STEPS - step)
        if step == STEPS // 2:
            strike("mid_step")
            wait()
    return value


def wrap_finish() -> None:
    """Let the process die just before or just after it hands a result in."""
    finish = Store.finish

    def struck(store, claim, result):
        strike("before_finish")
        answer = finish(store, claim, result)
        strike("after_finish")
        return answer

    Store.finish = struck


def limit_pages(connection, record) -> None:
    """Keep an SQLite file from growing, as a full disk does."""
    connection.execute(f"PRAGMA max_page_count = {os.environ['FAULT_PAGES']}")


def run(url: str, budget: str) -> RunOutcome:
    """Run the study under the budget."""
    return search.run(
        {"strategy": {"name": "random"}},
        budget,
        url,
        name="faults",
        objective=objective,
        n_layers=int(os.environ.get("FAULT_LAYERS", "3")),
        choices=list(CHOICES),
    )


def main(url: str, budget: str) -> int:
    """Run the study with what is to go wrong; returns the exit code of the command line."""
    wrap_finish()
    if "FAULT_CLOCK" in os.environ:
        true, off = time.time, float(os.environ["FAULT_CLOCK"])
        time.time = lambda: true() + off
    if "FAULT_PAGES" in os.environ:
        event.listen(Engine, "connect", limit_pages)
    if "FAULT_BREAKS" in os.environ:
        from broken import BREAKS

        BREAKS[os.environ["FAULT_BREAKS"]]()
    try:
        outcome = run(url, budget)
    except SearchError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stderr.write(f"{outcome.message}\n")
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
