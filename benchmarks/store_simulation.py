"""Plays many workers over one study of a synthetic objective, and checks that the books are right.

    PYTHONPATH=tests/support python -m benchmarks.store_simulation [--workers 200] [--trials 10000]

Each worker is a thread that reserves, draws an architecture, commits, reports once, gives a sign of
life and finishes; now and then one drops a trial as if it had been stopped. Without `--store` a
PostgreSQL server is started for it. Ends with exit code 1 where the books are wrong.
"""

import argparse
import multiprocessing
import os
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import store_factory as factory
import torch

from benchmarks.store import KINDS, N_LAYERS
from search.rows import Counts, Phase
from search.spec.budget import Budget
from search.store.repo import Store

STUDY = factory.study_spec(encoder={"d_model": 32, "n_layers": N_LAYERS, "d_ff": 64})
STOPPED_SHARE = 0.01
CONNECTIONS = 5  # as many as a process keeps open
WATCHED_EVERY_S = 5.0


def objective(kinds: Sequence[str]) -> float:
    """The synthetic objective of an architecture."""
    return 2.0 + 0.1 * kinds.count("attention") + zlib.crc32("".join(kinds).encode()) / 2**34


class Turns:
    """Lets so many threads at the store at once as it has connections for one process."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.free = threading.BoundedSemaphore(CONNECTIONS)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.store, name)

        def wait(*arguments: Any, **named: Any) -> Any:
            with self.free:
                return call(*arguments, **named)

        return wait


def work(store: Turns, study_id: int, budget: Budget, seed: int) -> None:
    """Claim and end trials until the budget is used up."""
    rng, worker = random.Random(seed), store.register_worker()

    def choose(counts: Counts) -> Phase | None:
        return None if budget.is_used_up(counts) else "search"

    while (claim := store.reserve(study_id, worker, choose)) is not None:
        outcome = "running" if claim.spec is not None else "duplicate"
        kinds: list[str] = []
        while outcome == "duplicate":
            kinds = rng.choices(KINDS, k=N_LAYERS)
            spec = factory.encoder_spec(", ".join(kinds), STUDY)
            outcome = store.commit(claim, spec, seed=0, seed_index=0, training_key="k", flops=10)
        if claim.spec is not None:
            kinds = [block["mixer"]["kind"] for block in claim.spec["blocks"]]
        loss = objective(kinds)
        store.report(claim, factory.reports(loss, validations=1))
        store.heartbeat(claim)
        if rng.random() < STOPPED_SHARE:
            store.release(claim, False, "stopped")
        else:
            store.finish(claim, factory.result(loss))


class Watch(threading.Thread):
    """Notes a process's memory and open descriptors every few seconds until it is told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.done = threading.Event()
        self.seen: list[tuple[int, int]] = []

    def run(self) -> None:
        """Look, wait, look again."""
        while not self.done.wait(WATCHED_EVERY_S):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            megabytes = pages * os.sysconf("SC_PAGE_SIZE") // 2**20
            self.seen.append((megabytes, len(os.listdir("/proc/self/fd"))))

    def summary(self) -> str:
        """What was seen after a tenth, half and all of the time."""
        self.done.set()
        self.join()
        if not self.seen:
            return "too short to watch"
        places = [int(share * (len(self.seen) - 1)) for share in (0.1, 0.5, 1.0)]
        return ", ".join(f"{self.seen[i][0]} MB and {self.seen[i][1]} files" for i in places)


def process(url: str, study_id: int, n_trials: int, seeds: Sequence[int]) -> None:
    """Run some of the workers in this process; they share its connections."""
    torch.set_num_threads(1)
    watch = Watch()
    watch.start()
    with Store.open(url, create=False) as store:
        budget = Budget("trials", n_trials)
        turns = Turns(store)
        threads = [
            threading.Thread(target=work, args=(turns, study_id, budget, seed)) for seed in seeds
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(
        f"{len(seeds)} workers in one process: {time.process_time():.0f} s of processor time; "
        f"after a tenth, half and all of the time {watch.summary()}",
        flush=True,
    )


def problems(store: Store, study_id: int, n_trials: int) -> list[str]:
    """Return what is wrong in the books."""
    rows = store.rows(study_id)
    found = []
    # Numbers of reservations that were lost stay free where later ones were given out meanwhile.
    if len({row.number for row in rows}) != n_trials or len(rows) != n_trials:
        found.append(f"{len(rows)} trials")
    if any(row.state != "completed" for row in rows):
        found.append(f"{sum(row.state != 'completed' for row in rows)} trials are not completed")
    if len({row.arch_id for row in rows}) != len(rows):
        found.append("an architecture was trained twice")
    wrong = [row.number for row in rows if row.selection.get("loss") != objective(row.mixers)]
    if wrong:
        found.append(f"{len(wrong)} trials have the result of another one")
    ends = store.query(
        f"SELECT COUNT(*) FROM attempts WHERE outcome = 'completed' AND study_id = {int(study_id)}"
    ).rows[0][0]
    if ends != n_trials:
        found.append(f"{ends} attempts were completed")
    if store.study(study_id).n_running:
        found.append("a lease is still held")
    return found


def main() -> None:
    """Play, check, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", default=None, help="an empty place; own PostgreSQL by default")
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with ExitStack() as stack:
        url = options.store
        if url is None:
            from postgres import cluster

            server = stack.enter_context(cluster())
            url = server.url(server.create_database())
        store = stack.enter_context(Store.open(url))
        study_id = store.ensure_study("simulation", STUDY, factory.PLUGINS).id
        started = time.perf_counter()
        seeds = range(options.workers)
        running = [
            multiprocessing.get_context("spawn").Process(
                target=process,
                args=(url, study_id, options.trials, seeds[first :: options.processes]),
            )
            for first in range(options.processes)
        ]
        for one in running:
            one.start()
        for one in running:
            one.join()
        seconds = time.perf_counter() - started
        found = problems(store, study_id, options.trials)
        queued = store.query("SELECT COUNT(*) FROM attempts WHERE outcome = 'preempted'").rows[0][0]
        timing(store)
    print(
        f"{options.workers} workers, {options.trials:,} trials ({queued} of them stopped once and "
        f"taken up again): {seconds:.0f} s, {options.trials / seconds:.0f} trials a second, "
        f"{1e3 * seconds / options.trials:.1f} ms each"
    )
    print("; ".join(found) or "the books are right")
    sys.exit(bool(found))


def timing(store: Store) -> None:
    """Print what reading costs afterwards."""
    for name, call in (
        ("best 50", lambda: store.leaderboard("simulation", 50)),
        ("all rows", lambda: store.rows("simulation", curves=False)),
        ("all rows again", lambda: store.rows("simulation", curves=False)),
    ):
        started = time.perf_counter()
        call()
        print(f"{name}: {1e3 * (time.perf_counter() - started):.0f} ms")


if __name__ == "__main__":
    main()
