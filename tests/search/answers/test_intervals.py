import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from search.answers.intervals import (
    IDENTICAL,
    TOO_FEW,
    mean_interval,
    rank_correlation,
    runs_needed,
    sd,
    welch,
)

RUNS = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=9)


@given(RUNS, RUNS)
def test__welch__any_two_samples__equals_scipy(left, right):
    interval = welch(left, right, 0.95)
    if sd(left) is None or sd(right) is None:  # scipy warns of these
        assert (interval.reason == IDENTICAL) == (sd(left) is None and sd(right) is None)
        return
    peer = stats.ttest_ind(left, right, equal_var=False)
    ends = peer.confidence_interval(0.95)
    assert interval.df == pytest.approx(peer.df, rel=1e-9)
    assert interval.low == pytest.approx(ends.low, rel=1e-8, abs=1e-9)
    assert interval.high == pytest.approx(ends.high, rel=1e-8, abs=1e-9)
    assert interval.low < interval.estimate < interval.high


def test__welch__worked_by_hand__two_and_two_runs():
    # means 2 and 5; variances 2 and 8; u = 1, v = 4; df = 25 / (1 + 16); se = sqrt(5)
    interval = welch([1.0, 3.0], [3.0, 7.0], 0.9)
    assert interval.estimate == -3.0
    assert interval.df == pytest.approx(25 / 17)
    half = stats.t.ppf(0.95, 25 / 17) * math.sqrt(5)
    assert interval.high == pytest.approx(-3.0 + half)


@pytest.mark.parametrize("n", [2, 3, 6])
def test__welch__noise_three_times_larger_in_one_arm__covers_as_it_says(n):
    generator = np.random.default_rng(n)
    intervals = [
        welch(generator.normal(-0.05, 0.003, n), generator.normal(0.0, 0.0095, n), 0.95)
        for _ in range(1500)
    ]
    covered = np.mean([interval.low <= -0.05 <= interval.high for interval in intervals])
    assert 0.93 < covered < 0.99  # with two runs Welch errs on the safe side


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ([1.0], [2.0, 3.0], TOO_FEW),
        ([1.0, 1.0], [2.0, 2.0, 2.0], IDENTICAL),
        ([0.1 + 0.2, 0.3], [0.3, 0.3], IDENTICAL),
    ],
)
def test__welch__noise_not_measured__no_ends(left, right, reason):
    interval = welch(left, right, 0.95)
    assert (interval.low, interval.high, interval.df) == (None, None, None)
    assert interval.reason == reason


@given(RUNS)
def test__mean_interval__any_differences__equals_scipy(differences):
    interval = mean_interval(differences, 0.95)
    if sd(differences) is None:
        assert interval.reason == IDENTICAL
        return
    ends = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert interval.low == pytest.approx(ends.low, rel=1e-8, abs=1e-9)
    assert interval.high == pytest.approx(ends.high, rel=1e-8, abs=1e-9)


def test__runs_needed__many_runs__tends_to_the_textbook_constant():
    # One-sided 5 %, power 80 %, equal SDs: n = 12.4 (sigma / margin)^2 per arm.
    assert runs_needed(1.0, 1.0, 0.05, 0.90) / (1.0 / 0.05) ** 2 == pytest.approx(12.4, abs=0.05)


@pytest.mark.parametrize(("sds", "margin"), [((1.0, 1.0), 1.0), ((1.0, 0.2), 1.5)])
def test__runs_needed__simulated__the_interval_clears_the_margin_four_times_in_five(sds, margin):
    n = runs_needed(*sds, margin, 0.95)
    generator = np.random.default_rng(0)

    def power(runs):
        cleared = [
            welch(
                generator.normal(0.0, sds[0], runs), generator.normal(0.0, sds[1], runs), 0.95
            ).high
            < margin
            for _ in range(600)
        ]
        return np.mean(cleared)

    assert power(n) > 0.75  # 0.8 less three standard errors of 600 draws
    assert power(max(2, n // 2)) < 0.75


def test__rank_correlation__against_scipy__same_estimate_and_honest_ends():
    generator = np.random.default_rng(1)
    x = generator.normal(size=40)
    y = x + generator.normal(size=40)
    interval = rank_correlation(x.tolist(), y.tolist())
    assert interval.estimate == pytest.approx(stats.spearmanr(x, y).statistic)
    assert 0 < interval.low < interval.estimate < interval.high < 1


@pytest.mark.parametrize("direction", [1, -1])
def test__rank_correlation__perfect_order__interval_keeps_a_width(direction):
    x = list(range(8))
    interval = rank_correlation(x, [direction * value**3 for value in x])
    assert interval.estimate == pytest.approx(direction)
    assert interval.high - interval.low > 0.05


def test__rank_correlation__constant_column__has_none():
    assert rank_correlation([1.0] * 9, list(range(9))) is None


def test__rank_correlation__same_seed__same_interval():
    x, y = [3, 1, 2, 5, 4, 7, 6, 9], [1, 2, 3, 4, 6, 5, 8, 7]
    assert rank_correlation(x, y, seed=3) == rank_correlation(x, y, seed=3)
