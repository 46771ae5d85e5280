"""A worker process that opens a store, makes it if need be, and fills a study with made-up trials.

Started by together.py; every trial reports four times.
"""

import time

import store_factory

from search.messages import Report
from search.store.repo import Store

KINDS = ("attention", "sepconv", "average")
POINTS = 4
LAYERS = 5


def notation_of(number: int) -> str:
    """A stack of its own for each number below 3^5."""
    return ", ".join(KINDS[number // 3**place % 3] for place in range(LAYERS))


def loss_of(number: int, step: int) -> float:
    """What the trial of a number reports."""
    return 2.0 + number / 100 + (POINTS - step) / 1000


def check(store: Store, budget: int) -> None:
    """Hold every field of every trial to what the workers wrote."""
    study, rows = store.study("busy"), store.rows("busy")
    assert (study.n_trials, study.n_completed, study.n_running) == (budget, budget, 0)
    assert study.space_revision == 1
    assert [row.number for row in rows] == list(range(budget))
    for row in rows:
        points = range(1, POINTS + 1)
        assert row.curve == tuple((p, loss_of(row.number, p)) for p in points)
        assert row.selection["loss"] == row.curve[-1][1]
        assert None not in (row.params, row.flops, row.latency_s, row.probe)
        assert row.mixers == tuple(notation_of(row.number).split(", "))


def main(url: str, budget: str, seconds: str) -> None:
    """Claim, report, finish, until the budget is used up; a trial takes so many seconds."""
    pause, most = float(seconds) / POINTS, int(budget)
    spec = store_factory.study_spec(encoder={"d_model": 32, "n_layers": LAYERS, "d_ff": 64})
    with Store.open(url, lease_s=30.0) as store:
        study = store.ensure_study("busy", spec, store_factory.PLUGINS)
        worker = store.register_worker()
        while claim := store.reserve(
            study.id, worker, lambda counts: "search" if counts.started < most else None
        ):
            encoder = store_factory.encoder_spec(notation_of(claim.number), spec)
            outcome = store.commit(claim, encoder, seed=0, seed_index=0, training_key="k")
            assert outcome == "running", outcome
            for step in range(1, POINTS + 1):
                time.sleep(pause)
                metrics = {"loss": loss_of(claim.number, step), "accuracy": 0.5}
                assert store.report(claim, [Report(step=step, split="selection", metrics=metrics)])
                assert store.heartbeat(claim)
            store.finish(claim, store_factory.result(loss_of(claim.number, POINTS), steps=POINTS))
        store.close_worker(worker)
