import dataclasses

import pytest
from simulated import ATTENTION, question, row

from search.answers.arms import arms_of
from search.answers.pareto import front_measures, front_of
from search.rows import Latency
from search.spec.limits import Limit
from search.spec.measures import COSTS, Measure

A, S, B, M = ATTENTION, "sepconv", "bproj", "average"
LOSS = Measure("loss", "nats", "minimize", "metric")


def timed(median, device="cpu"):
    return Latency(
        median=median,
        low=0.9 * median,
        high=1.1 * median,
        n=20,
        batch_size=32,
        seq_len=64,
        device=device,
        dtype="float32",
    )


def runs(layers, losses, *, start, flops=100, seconds=0.01, device="cpu", **fields):
    """A first run and repeats of it; the times wobble by 1 %."""
    return [
        row(
            start + k,
            layers,
            loss,
            phase="confirm" if k else "search",
            seed=k,
            seed_index=k,
            flops=flops,
            latency_s=seconds * (1 + 0.01 * (-1) ** k),
            latency=timed(seconds * (1 + 0.01 * (-1) ** k), device),
            **fields,
        )
        for k, loss in enumerate(losses)
    ]


def front(rows, **changes):
    asked = question(**changes)
    found = front_of(arms_of(rows, asked), asked)
    return found, {point.code: point for point in found.points}


def test__front__planted__certain_dominated_and_close_are_told_apart():
    wobble = (0.0, 0.01, -0.01, 0.005)
    rows = [
        *runs((A,), [3.0 + w for w in wobble], start=0, flops=400),
        *runs((S,), [3.5 + w for w in wobble], start=10, flops=100),
        *runs((B,), [3.6 + w for w in wobble], start=20, flops=200),
        *runs((M,), [3.503 + w for w in wobble], start=30, flops=100),
    ]
    found, points = front(rows)
    assert [m.name for m in found.measures] == ["loss", "flops"]
    assert {code: p.word for code, p in points.items()} == {
        "A": "on the front",
        "S": "possibly",
        "B": "dominated",
        "M": "possibly",
    }
    assert points["S"].is_best
    assert not points["M"].is_best
    assert points["A"].values == (pytest.approx(3.00125), 400)
    assert points["A"].low[0] < 3.00125 < points["A"].high[0]
    assert (points["A"].low[1], points["A"].high[1]) == (400, 400)
    assert (points["A"].n, found.left_out, found.reason) == (4, 0, "")


def test__front__single_runs__nothing_is_said_and_the_reason_is():
    rows = [*runs((A,), [3.0], start=0, flops=400), *runs((S,), [2.0], start=1)]
    found, points = front(rows)
    assert {p.word for p in points.values()} == {"unknown"}
    assert {p.probability for p in points.values()} == {None}
    assert points["S"].is_best
    assert not points["A"].is_best
    assert points["A"].low[0] is None
    assert "repeats" in found.reason


def test__front__times_of_two_devices__the_rarer_is_left_out():
    measures = (LOSS, COSTS["latency"])
    wobble = (0.0, 0.01, -0.01)
    rows = [
        *runs((A,), [3.0 + w for w in wobble], start=0, seconds=0.02),
        *runs((S,), [3.5 + w for w in wobble], start=10, seconds=0.01),
        *runs((B,), [2.0], start=20, seconds=0.001, device="cuda"),
    ]
    found, points = front(rows, measures=measures)
    assert set(points) == {"A", "S"}
    assert found.left_out == 1
    assert found.conditions == ("cpu", "float32", 32, 64)
    assert points["S"].values[1] == pytest.approx(0.01, rel=0.01)
    assert points["S"].low[1] < points["S"].values[1] < points["S"].high[1]


def test__front__over_a_limit__is_no_place_on_it_and_beats_nobody():
    limit = Limit("max_flops", COSTS["flops"], 150.0)
    wobble = (0.0, 0.01, -0.01)
    rows = [
        *runs((A,), [1.0 + w for w in wobble], start=0, flops=151),
        *runs((S,), [3.0 + w for w in wobble], start=10, flops=100),
        *runs((B,), [2.0 + w for w in wobble], start=20, flops=150),
    ]
    _, points = front(rows, limits=(limit,))
    assert points["A"].word == "over a limit"
    assert points["A"].probability is None
    assert points["B"].word == points["S"].word == "on the front"


def test__front_measures__one_objective__a_counted_cost_that_is_not_matched_stands_beside():
    assert [m.name for m in front_measures(question())] == ["loss", "flops"]
    assert [m.name for m in front_measures(question(match="flops"))] == ["loss", "params"]
    both = (LOSS, COSTS["peak_memory"])
    assert front_measures(question(measures=both)) == both


def test__front__no_rows__is_empty_and_plain():
    found, _ = front([])
    assert dataclasses.asdict(found)["points"] == ()
