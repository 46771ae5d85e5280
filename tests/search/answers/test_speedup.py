import math

import numpy as np
import pytest
from simulated import ATTENTION, listed_baselines, question, row

from search.answers.answer import make_answer
from search.answers.arms import arms_of
from search.answers.speedup import common_conditions, ratio_of
from search.rows import Latency

A, S = ATTENTION, "sepconv"
FULL, CHEAP, SHORT = (A,) * 4, (S, S, S, A), (S, S)
CHOSEN = {"pick": CHEAP, "reference": FULL, "shorter": SHORT}


def timed(median, *, spread=0.02, device="cpu", batch_size=32):
    return Latency(
        median=median,
        low=median * (1 - spread),
        high=median * (1 + spread),
        n=20,
        batch_size=batch_size,
        seq_len=64,
        device=device,
        dtype="float32",
    )


def runs(layers, loss, seconds, *, n=5, start=0, wobble=0.01, **conditions):
    """Confirmation runs of one architecture; losses and times wobble around their means."""
    turns = [0.0, 1.0, -1.0, 0.5, -0.5]
    return [
        row(
            start + k,
            layers,
            loss + 0.004 * turns[k],
            phase="confirm",
            seed=k + 1,
            seed_index=k + 1,
            flops=100 * sum(3 if layer == A else 1 for layer in layers),
            latency_s=seconds,
            latency=timed(seconds * (1 + wobble * turns[k]), **conditions),
        )
        for k in range(n)
    ]


def speed_up(*groups):
    rows = [r for group in groups for r in group]
    chosen = {
        name: layers for name, layers in CHOSEN.items() if any(layers == r.mixers for r in rows)
    }
    return make_answer(
        rows, question(), chosen, mixers=(A, S), baselines=listed_baselines()
    ).speed_up


FAST = {"reference": (3.0, 0.030), "pick": (2.9, 0.020), "shorter": (3.2, 0.015)}


@pytest.mark.parametrize(
    ("changes", "real", "because"),
    [
        ({}, "yes", ()),
        ({"pick": (2.9, 0.031)}, "no", ("not faster",)),
        ({"pick": (2.9, 0.030)}, "undecided", ("within the noise",)),
        ({"pick": (3.1, 0.020)}, "no", ("worse than all-attention",)),
        ({"shorter": (2.9, 0.015)}, "no", ("SS, with fewer layers, is at least as fast",)),
        ({"shorter": (2.7, 0.015)}, "no", ("SS, with fewer layers, is at least as fast",)),
        ({"shorter": (2.7, 0.025)}, "yes", ()),
        ({"shorter": (2.7, 0.020)}, "undecided", ("SS, with fewer layers, does as well",)),
        ({"shorter": None}, "undecided", ("no shorter model",)),
        ({"pick": (3.1, 0.031)}, "no", ("not faster", "worse than all-attention")),
    ],
)
def test__speed_up__planted_times_and_losses__word_and_reason(changes, real, because):
    planted = FAST | changes
    groups = [
        runs(CHOSEN[name], *planted[name], start=10 * k)
        for k, name in enumerate(CHOSEN)
        if planted[name] is not None
    ]
    found = speed_up(*groups)
    assert found.real == real
    assert len(found.because) == len(because)
    assert all(part in why for part, why in zip(because, found.because, strict=True))


def test__speed_up__measured_and_counted__stand_side_by_side_with_their_conditions():
    found = speed_up(runs(FULL, 3.0, 0.03), runs(CHEAP, 2.9, 0.02, start=10))
    assert found.measured.estimate == pytest.approx(1.5)
    assert found.measured.low < 1.5 < found.measured.high
    assert found.counted == pytest.approx(1200 / 600)
    assert found.conditions == ("cpu", "float32", 32, 64)
    assert (found.measured.n, found.measured.n_other) == (5, 5)


def test__C13__speed_up__other_device_or_batch__is_never_mixed_in():
    cpu = [runs(FULL, 3.0, 0.03), runs(CHEAP, 2.9, 0.02, start=10)]
    foreign = [
        runs(CHEAP, 2.9, 0.001, start=20, device="cuda", n=3),
        runs(FULL, 3.0, 9.0, start=30, batch_size=1, n=4),
    ]
    assert speed_up(*cpu, *foreign).measured.estimate == pytest.approx(1.5)
    apart = speed_up(runs(FULL, 3.0, 0.03), runs(CHEAP, 2.9, 0.02, start=10, device="cuda"))
    assert apart is None


def test__speed_up__one_run_a_side__estimate_without_an_interval_is_undecided():
    found = speed_up(runs(FULL, 3.0, 0.03, n=1), runs(CHEAP, 2.0, 0.01, n=1, start=10))
    assert (found.real, found.measured.low) == ("undecided", None)
    assert found.measured.estimate == pytest.approx(3.0)
    assert any("too few runs" in why for why in found.because)


def test__common_conditions__more_shared_runs_win():
    rows = [
        *runs(FULL, 3.0, 0.03, n=5),
        *runs(FULL, 3.0, 0.03, n=2, start=10, device="cuda"),
        *runs(CHEAP, 3.0, 0.03, n=1, start=20),
        *runs(CHEAP, 3.0, 0.03, n=2, start=30, device="cuda"),
    ]
    arms = arms_of(rows, question())
    assert common_conditions(arms)[0] == "cuda"


def test__ratio_of__interval__covers_the_true_ratio_as_often_as_it_says():
    # True ratio 1.5; runs differ by 3 %, the passes of a run by 10 %.
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        rows = []
        for layers, mean in ((FULL, 0.03), (CHEAP, 0.02)):
            for k in range(4):
                centre = mean * math.exp(0.03 * generator.standard_normal())
                passes = np.sort(centre * np.exp(0.1 * generator.standard_normal(20)))
                low, median, high = np.quantile(passes, [0.1, 0.5, 0.9])
                latency = Latency(
                    median=median,
                    low=low,
                    high=high,
                    n=20,
                    batch_size=1,
                    seq_len=1,
                    device="cpu",
                    dtype="float32",
                )
                rows.append(row(len(rows), layers, 1.0, seed=k, latency=latency))
        full, cheap = arms_of(rows, question())
        found = ratio_of(full, cheap, ("cpu", "float32", 1, 1))
        covered += found.low <= 1.5 <= found.high
    # 95 % +- three standard errors of 400 replays, and above: passes are counted twice.
    assert 0.917 <= covered / 400 <= 1.0
    assert covered < 400
