"""Times claims, ends and signs of life in a store, beside Optuna's own database storage.

    PYTHONPATH=tests/support python -m benchmarks.store_rates [--trials N] [--threads N]

Without `--store` it starts a PostgreSQL server of its own, which is gone afterwards. Architectures
are drawn before the clock starts, so the rates are of the store alone. Targets: reserve and commit
at 100 a second, 200 workers' signs of life for less than 5 % of a core.
"""

import argparse
import itertools
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import store_factory as factory
import torch

from benchmarks.store import KINDS, N_LAYERS
from search.rows import Claim
from search.store import bursts
from search.store.repo import Store

WORKERS = 200
BEAT_S = 15.0
READINGS = 3
LEASE_S = 3600.0  # none runs out, however busy the machine is
STUDY = factory.study_spec(encoder={"d_model": 32, "n_layers": N_LAYERS, "d_ff": 64})


def drawn(n: int) -> Iterator[Any]:
    """Yield the specs of n different architectures, in random order."""
    every = list(itertools.islice(itertools.product(KINDS, repeat=N_LAYERS), 40 * n))
    for kinds in random.Random(0).sample(every, n):
        yield factory.encoder_spec(", ".join(kinds), STUDY)


def claim(store: Store, study_id: int, worker: int, spec: Any) -> Claim:
    """Reserve and commit one trial."""
    made = factory.reserve(store, study_id, worker)
    # Nothing may be taken over from the study timed before.
    key = f"rates-{study_id}"
    outcome = store.commit(made, spec, seed=0, seed_index=0, training_key=key, flops=10**12)
    assert outcome == "running", outcome
    return made


def trial(store: Store, study_id: int, worker: int, spec: Any) -> None:
    """Do all that a trial costs a store."""
    made = claim(store, study_id, worker, spec)
    messages = factory.reports(2.5, validations=READINGS)
    for start in range(0, len(messages), 2):
        assert store.report(made, messages[start : start + 2])
    assert store.finish(made, factory.result(2.5))


def rate(
    store: Store, name: str, call: Callable[[Any], Any], arguments: list[Any], threads: int
) -> None:
    """Print how many calls a second some threads make together, and what a call costs."""
    with ThreadPoolExecutor(threads) as pool:
        n_warm = min(threads, len(arguments) // 4)  # connections and compiled statements
        list(pool.map(call, arguments[:n_warm]))
        server, cpu, started = server_seconds(store), time.process_time(), time.perf_counter()
        done = len(list(pool.map(call, arguments[n_warm:])))
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        server = server_seconds(store) - server
    print(
        f"| {name} | {threads} | {done / seconds:,.0f} | {1e3 * seconds / done:.1f} "
        f"| {1e3 * cpu / done:.1f} | {1e3 * server / done:.1f} |",
        flush=True,
    )


def beats(store: Store, study_id: int, rounds: int = 5) -> None:
    """Print what the signs of life of many workers cost, and what a connection does by itself."""
    worker = store.register_worker()
    held = [claim(store, study_id, worker, spec) for spec in drawn(WORKERS)]

    def beat(made: Claim) -> None:
        assert store.heartbeat(made)

    print(f"\n{WORKERS} workers, a sign of life every {BEAT_S:.0f} s:")
    for kept_s, call, how in (
        (bursts.KEPT_S, beat, "on a connection in use"),
        (0.0, beat, "on one of its own"),
        (0.0, partial(connect, store), "a connection that asks nothing"),
    ):
        bursts.KEPT_S = kept_s
        server, cpu, started = server_seconds(store), time.process_time(), time.perf_counter()
        for made in rounds * held:
            call(made)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        served = server_seconds(store) - server
        n = rounds * WORKERS
        share = 100 * WORKERS / BEAT_S * (cpu + served) / n
        print(
            f"{how}: {1e3 * seconds / n:.2f} ms each ({1e3 * cpu / n:.2f} ms of processor time "
            f"here, {1e3 * served / n:.2f} ms in the server): {share:.1f} % of a core in all"
        )


def connect(store: Store, _: Claim) -> None:
    """Open a connection and close it."""
    store.engine.raw_connection().invalidate()


def server_seconds(store: Store) -> float:
    """Return the processor time of the server's processes, ended ones too; 0 for SQLite."""
    if store.address.is_sqlite:
        return 0.0
    with store.reading() as connection:
        backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    parent = stat_fields(backend)[1]
    ticks = sum(int(field) for field in stat_fields(parent)[11:15])
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = stat_fields(folder.name)
            if fields[1] == parent:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def stat_fields(pid: str | int) -> list[str]:
    """Return what the system says of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def optuna_trials(store: Store, url: str, n: int) -> None:
    """Print the rate of the same trials in Optuna's storage: random search, three reports."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.RDBStorage(url)
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(0))

    def one(_: int) -> None:
        asked = study.ask()
        for layer in range(N_LAYERS):
            asked.suggest_categorical(f"layer_{layer}", KINDS)
        for step in range(READINGS):
            asked.report(2.5 + step, step)
        study.tell(asked, 2.5)

    rate(store, "a trial in Optuna's RDBStorage", one, list(range(n)), 1)


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", default=None, help="an empty place; own PostgreSQL by default")
    parser.add_argument("--optuna", default=None, help="an empty place for Optuna's tables")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(1)  # what a stack sees is followed with it
    print(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores\n")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url, other = options.store, options.optuna
        if url is None:
            from postgres import cluster

            server = stack.enter_context(cluster())
            url = server.url(server.create_database())
            name = server.create_database()
            other = f"postgresql+psycopg://{server.user}@/{name}?host={server.folder}"
        store = stack.enter_context(Store.open(url, lease_s=LEASE_S))
        measure(store, other or f"sqlite:///{folder}/optuna.db", options.trials, options.threads)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"\npeak memory {used.ru_maxrss / 1024:.0f} MB")


def measure(store: Store, optuna_url: str, n: int, threads: int) -> None:
    """Print the table of one store; the part to compare with stands between ours."""
    worker = store.register_worker()
    print(
        "| | threads | a second | ms each | processor ms each, client | server |\n"
        "|---|---|---|---|---|---|"
    )
    for count in sorted({1, threads}):
        study_id = store.ensure_study(f"claims-{count}", STUDY, factory.PLUGINS).id
        claims = partial(claim, store, study_id, worker)
        rate(store, "reserve and commit", claims, list(drawn(n)), count)
    optuna_trials(store, optuna_url, n)
    for count in sorted({1, threads}):
        study_id = store.ensure_study(f"trials-{count}", STUDY, factory.PLUGINS).id
        trials = partial(trial, store, study_id, worker)
        rate(store, "a whole trial", trials, list(drawn(n)), count)
    beats(store, store.ensure_study("beats", STUDY, factory.PLUGINS).id)


if __name__ == "__main__":
    main()
