import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from search.answers import front
from search.answers.front import Estimates, estimates_of, front_probability, nondominated
from search.spec.measures import COSTS, Measure

LOSS = Measure("loss", "nats", "minimize", "metric")
ACCURACY = Measure("accuracy", "fraction", "maximize", "metric")
FLOPS, LATENCY = COSTS["flops"], COSTS["latency"]


def brute_force(values):
    """Straight from the definition, row by row."""
    return [
        not any(
            all(b <= a for a, b in zip(row, other, strict=True))
            and any(b < a for a, b in zip(row, other, strict=True))
            for other in values
        )
        for row in values
    ]


def exact(values):
    shape = np.shape(values)
    none = np.zeros(shape)
    return Estimates(np.asarray(values, float), none, none + 1, none + 1, none.astype(bool))


# Few distinct values, so that ties and equal rows are common.
ROWS = st.integers(1, 3).flatmap(
    lambda k: st.lists(st.tuples(*[st.integers(0, 4)] * k), min_size=1, max_size=12)
)


@settings(max_examples=200, deadline=None)
@given(rows=ROWS)
def test__nondominated__any_values__as_by_brute_force(rows):
    assert nondominated(np.array(rows, float)).tolist() == brute_force(rows)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test__front_probability__no_noise__is_the_front_itself(rows):
    found = front_probability(exact(rows), seed=0, draws=20)
    assert found.tolist() == [float(kept) for kept in brute_force(rows)]


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8),
    sd=st.sampled_from([0.05, 1.0]),
    seed=st.integers(0, 99),
)
def test__front_probability__noise__as_drawn_and_counted_one_by_one(rows, sd, seed):
    values = np.array(rows, float)
    shape = values.shape
    noise = np.column_stack([np.full(len(rows), sd), np.zeros(len(rows))])
    estimates = Estimates(
        values, noise, np.full(shape, 1e6), np.ones(shape), np.zeros(shape, dtype=bool)
    )
    found = front_probability(estimates, seed=seed)
    generator = np.random.default_rng(seed + 1)
    draws = values + noise * generator.standard_normal((600, *shape))
    counted = np.mean([brute_force(draw.tolist()) for draw in draws], axis=0)
    # Two independent samples of a share: SD at most sqrt(1/4 (1/1000 + 1/600)) = .026.
    assert np.abs(found - counted).max() < 0.12


@pytest.mark.parametrize("gap", [0.0, 0.5, 2.0])
def test__front_probability__two_of_equal_cost__is_the_normal_distribution_of_their_gap(gap):
    values = np.array([[1.0, 7.0], [1.0 + gap, 7.0]])
    noise = np.array([[1.0, 0.0], [1.0, 0.0]])
    large = np.full((2, 2), 1e6)
    estimates = Estimates(values, noise, large, np.ones((2, 2)), np.zeros((2, 2), dtype=bool))
    found = front_probability(estimates, seed=3, draws=20_000)
    ahead = stats.norm.cdf(gap / math.sqrt(2))
    assert found == pytest.approx([ahead, 1 - ahead], abs=0.02)


def test__front_probability__few_degrees_of_freedom__is_less_certain():
    values = np.array([[1.0, 7.0], [3.5, 7.0]])
    noise = np.array([[1.0, 0.0], [1.0, 0.0]])

    def second(df):
        shape = (2, 2)
        given = Estimates(values, noise, np.full(shape, df), np.ones(shape), noise < 0)
        return front_probability(given, seed=0, draws=20_000)[1]

    # One pooled SD for both: the gap over sqrt(2) s follows Student's t.
    assert second(3.0) == pytest.approx(stats.t.sf(2.5 / math.sqrt(2), 3), abs=0.01)
    assert second(1e6) == pytest.approx(stats.norm.sf(2.5 / math.sqrt(2)), abs=0.01)


def test__front_probability__rows_beyond_doubt__change_nothing_by_being_left_out(monkeypatch):
    generator = np.random.default_rng(0)
    values = generator.random((400, 2))
    shape = values.shape
    noise = np.full(shape, 0.01)
    estimates = Estimates(values, noise, np.full(shape, 50.0), np.ones(shape), noise < 0)
    left_out = front.hopeless(estimates)
    assert left_out.mean() > 0.5
    quick = front_probability(estimates, seed=0)
    monkeypatch.setattr(front, "hopeless", lambda estimates: np.zeros(400, dtype=bool))
    monkeypatch.setattr(front, "MANY", 400)
    whole = front_probability(estimates, seed=1)
    assert whole[left_out].max() < 0.005
    # Two independent shares of 1000 draws: SD at most .022.
    assert np.abs(quick - whole).max() < 0.1


def by_seed(*values, start=0):
    return dict(enumerate(values, start))


def test__estimates_of__own_sd_from_three_runs_else_pooled_and_logarithms_of_times():
    readings = [
        [by_seed(1.0, 1.2, 1.4), by_seed(10.0), by_seed(0.01, 0.02)],
        [by_seed(2.0, 2.2), by_seed(20.0), by_seed(0.04)],
        [by_seed(3.0), by_seed(30.0), by_seed(0.08, 0.08)],
    ]
    found = estimates_of(readings, (ACCURACY, FLOPS, LATENCY))
    pooled = math.sqrt((2 * 0.04 + 1 * 0.02) / 3)
    assert found.values[:, 0] == pytest.approx([-1.0, -2.0, -3.0])
    assert found.sd[:, 0] == pytest.approx([0.2, pooled, pooled])
    assert found.df[:, 0].tolist() == [2, 3, 3]
    assert found.n[:, 0].tolist() == [1, 1, 1]
    assert found.sd[:, 1].tolist() == [0, 0, 0]
    assert found.values[:, 2] == pytest.approx(np.log([math.sqrt(2e-4), 0.04, 0.08]))
    assert found.n[:, 2].tolist() == [2, 1, 2]
    assert found.sd[:, 2] == pytest.approx([math.log(2) / 2] * 3)


def test__estimates_of__means__are_over_the_seeds_that_all_share():
    def means(*rows):
        return estimates_of([[row] for row in rows], (LOSS,)).values[:, 0].tolist()

    assert means(by_seed(1.0, 3.0, start=1), by_seed(2.0, 6.0, start=1)) == [2.0, 4.0]
    # Seed 2 is hard for all; the row that has it must not look worse for it.
    assert means(by_seed(1.0, 9.0, start=1), by_seed(2.0, start=1)) == [1.0, 2.0]
    assert means(by_seed(1.0, 3.0, start=1), by_seed(2.0, start=7)) == [2.0, 2.0]


def test__estimates_of__no_repeats__noise_is_unknown_never_zero():
    readings = [[by_seed(1.0), by_seed(10.0)], [by_seed(2.0), by_seed(9.0)]]
    found = estimates_of(readings, (LOSS, FLOPS))
    assert np.isnan(found.sd[:, 0]).all()
    assert np.isnan(front_probability(found, seed=0)).all()
