"""Times the store: bookkeeping of a trial, and reading among many.

    PYTHONPATH=tests/support python -m benchmarks.store [--trials N ...] [--store URL]

Fills a new store with made-up trials of 12 layers, then prints the median, the smallest and the
largest time of each call. `cpu` is the processor time of this process, which a busy machine
disturbs less. Targets: bookkeeping of a trial <= 15 ms, the best 50 of 10,000 trials <= 100 ms.
"""

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import store_factory as factory
from sqlalchemy import insert, text

from search.export import export_view
from search.phases import Ask
from search.phases.exploration import SearchPhase
from search.spec.space import Space
from search.store.measurements import Cost, Evaluation, MetricPoint, Probe
from search.store.repo import Store
from search.store.studies import newest_revision
from search.store.summary import rebuild_front
from search.store.tables import Architecture, Trial, TrialBlock
from search.strategies import make_strategy

N_LAYERS = 12
KINDS = ("attention", "sepconv", "average")
VALIDATIONS = 6
BATCH = 1000
PATIENCE_S = 600.0  # the limit of a user's query is not what is measured


def architectures(n: int) -> Iterator[tuple[str, ...]]:
    """Yield n different stacks."""
    return itertools.islice(itertools.product(KINDS, repeat=N_LAYERS), n)


def fill(store: Store, study_id: int, n: int) -> None:
    """Write n completed trials of different architectures, past the store's own interface."""
    random_numbers = random.Random(0)
    with store.writing(study_id) as connection:
        revision = newest_revision(connection, study_id)
        assert revision is not None
        first = store.query("SELECT COALESCE(MAX(id), 0) FROM trials").rows[0][0] + 1
        rows: dict[Any, list[dict[str, Any]]] = {
            model: [] for model in (Trial, TrialBlock, Evaluation, Cost, Probe, MetricPoint)
        }
        board = []
        for index, kinds in enumerate(architectures(n)):
            trial_id, loss = first + index, random_numbers.gauss(2.5, 0.2)
            share = kinds.count("attention") / len(kinds)
            costs = {"params": 10**6 + int(4e5 * share), "flops": 10**8 + int(5e7 * share)}
            shared = {
                "arch_id": f"{index:016x}",
                "code": "".join(kind[0].upper() for kind in kinds),
                "notation": ", ".join(kinds),
                "n_layers": len(kinds),
            }
            rows[Trial].append(
                shared
                | {
                    "id": trial_id,
                    "study_id": study_id,
                    "revision_id": revision.id,
                    "number": index,
                    "phase": "search",
                    "state": "completed",
                    "seed": 0,
                    "seed_index": 0,
                    "training_key": "filled",
                    "mixers": list(kinds),
                    "spec": {"blocks": [{"mixer": {"kind": kind}} for kind in kinds]},
                    "sampler_params": {f"layer_{i}": kind for i, kind in enumerate(kinds)},
                    "sampler_attrs": {},
                    "attempt": 1,
                    "training_flops": 10**12,
                    "created_at": revision.created_at,
                }
            )
            rows[TrialBlock] += [
                {"trial_id": trial_id, "layer": i, "kind": k, "notation": k, "config": {"kind": k}}
                for i, k in enumerate(kinds)
            ]
            rows[Evaluation] += [
                {"trial_id": trial_id, "split": "selection", "metric": metric, "value": value}
                for metric, value in (("loss", loss), ("accuracy", 1 / loss))
            ]
            rows[Cost].append({"trial_id": trial_id, "latency_s": 0.004} | costs)
            rows[Probe].append(
                {"trial_id": trial_id, "moment": "final", "name": "probe", "value": 0.01}
            )
            rows[MetricPoint] += [
                {
                    "trial_id": trial_id,
                    "split": "selection",
                    "metric": "loss",
                    "step": 100 * step,
                    "value": loss + VALIDATIONS - step,
                }
                for step in range(1, VALIDATIONS + 1)
            ]
            board.append(
                shared
                | costs
                | {
                    "study_id": study_id,
                    "is_baseline": False,
                    "n": 1,
                    "mean": loss,
                    "score": loss,
                    "best": loss,
                    "best_trial_id": trial_id,
                    "test_n": 0,
                    "is_pareto": False,
                }
            )
        for model, lines in (*rows.items(), (Architecture, board)):
            for start in range(0, len(lines), BATCH):
                connection.execute(insert(model), lines[start : start + BATCH])
        if not store.address.is_sqlite:
            connection.execute(text("SELECT setval('trials_id_seq', (SELECT MAX(id) FROM trials))"))
        rebuild_front(connection, study_id)


def bookkeeping(store: Store, study_id: int, worker: int, n: int) -> Iterator[dict[str, Any]]:
    """Yield the times of one trial's calls, for n trials."""
    study = factory.study_spec(encoder={"d_model": 32, "n_layers": N_LAYERS, "d_ff": 64})
    for index in range(n):
        kinds = [KINDS[(index >> layer) & 1] for layer in range(N_LAYERS)]
        spec = factory.encoder_spec(", ".join(kinds), study)
        result = factory.result(2.5)
        messages = factory.reports(2.5, validations=VALIDATIONS)

        def run(spec: Any = spec, result: Any = result, messages: Any = messages) -> None:
            claim = factory.reserve(store, study_id, worker)
            store.commit(claim, spec, seed=0, seed_index=0, training_key="timed", flops=10**12)
            for start in range(0, len(messages), 2):
                store.report(claim, messages[start : start + 2])
            store.finish(claim, result)

        yield timed(run)


def timed(call: Callable[[], Any]) -> dict[str, float]:
    """Return the wall and processor seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def show(name: str, times: list[dict[str, float]]) -> None:
    """Print one line of the table in milliseconds."""
    cells = [f"{name:<42}"]
    for clock in ("wall", "cpu"):
        values = [1e3 * time_[clock] for time_ in times]
        cells.append(f"{statistics.median(values):8.1f} {min(values):8.1f} {max(values):8.1f}")
    print(" | ".join(cells))


def main() -> None:
    """Fill, time, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, nargs="+", default=[10_000])
    parser.add_argument("--store", default=None, help="an empty place; a temporary file by default")
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    for n_trials in options.trials:
        with tempfile.TemporaryDirectory() as folder:
            url = options.store or f"sqlite:///{folder}/search.db"
            with Store.open(url) as store:
                measure(store, n_trials, options.repeat, folder)


def measure(store: Store, n_trials: int, repeat: int, folder: str) -> None:
    """Print the table of one store."""
    study = factory.study_spec(
        encoder={"d_model": 32, "n_layers": N_LAYERS, "d_ff": 64},
        space={"choices": list(KINDS)},
    )
    worker = store.register_worker()
    heading = f"{'median':>8} {'least':>8} {'most':>8}"
    print(f"{'ms':<42} | {heading} (wall) | {heading} (cpu)")
    small = store.ensure_study("small", study, factory.PLUGINS).id
    show("bookkeeping of a trial, empty study", list(bookkeeping(store, small, worker, repeat)))
    study_id = store.ensure_study("filled", study, factory.PLUGINS).id
    started = time.perf_counter()
    fill(store, study_id, n_trials)
    print(f"(filled with {n_trials} trials in {time.perf_counter() - started:.1f} s)")
    show(
        f"bookkeeping of a trial among {n_trials}",
        list(bookkeeping(store, study_id, worker, repeat)),
    )
    reads: dict[str, Callable[[], Any]] = {
        "leaderboard, best 50": lambda: store.leaderboard("filled", 50),
        "search query, best 50": lambda: store.query(
            "SELECT * FROM leaderboard WHERE study = 'filled' ORDER BY place LIMIT 50"
        ),
        "search query, last 50 of trials_flat": lambda: store.query(
            "SELECT * FROM trials_flat WHERE study = 'filled' ORDER BY trial DESC LIMIT 50"
        ),
        "Pareto front": lambda: store.query(
            "SELECT * FROM pareto WHERE study = 'filled' AND is_pareto"
        ),
        "layer_effects": lambda: store.query(
            "SELECT * FROM layer_effects WHERE study = 'filled'", timeout_s=PATIENCE_S
        ),
        "study with its counts": lambda: store.study("filled"),
        "one trial": lambda: store.trial(1),
        "export of trials_flat as CSV": lambda: export_view(
            store, Path(folder) / "trials.csv", study="filled"
        ),
        "all rows with curves": lambda: store.rows("filled"),
        "all rows for a claim, one of them new": lambda: new_row(store, study_id, worker),
    }
    for name, call in reads.items():
        call()
        slow = name.startswith(("all rows", "export"))
        show(name, [timed(call) for _ in range(3 if slow else repeat)])
    for name in ("random", "tpe"):
        show(f"proposal among {n_trials}: {name}", proposals(store, study, study_id, name))


def new_row(store: Store, study_id: int, worker: int) -> None:
    """Read all rows as a claim does after one trial was reserved."""
    factory.reserve(store, study_id, worker)
    store.rows(study_id, curves=False)


def proposals(
    store: Store, study: Any, study_id: int, strategy: str, n: int = 3
) -> list[dict[str, float]]:
    """Return the times of asking the search's phase, after a first time that is not counted."""
    phase = SearchPhase(study, Space.of(study), make_strategy(strategy, {}, 0))
    times = []
    for turn in range(n + 1):
        rows = store.rows(study_id, curves=False)
        number = rows[-1].number + 1 + turn
        times.append(timed(partial(phase.choose, rows, Ask(number))))
    return times[1:]


if __name__ == "__main__":
    main()
