import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from search.answers.intervals import (
    IDENTICAL,
    TOO_FEW,
    Part,
    difference,
    mean_interval,
    provable,
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


def test__runs_needed__with_an_evaluation_error__the_interval_of_both_clears_the_margin():
    floor, margin = 0.3, 2.0
    n = runs_needed(1.0, 1.0, margin, 0.95, floor)
    assert n > runs_needed(1.0, 1.0, margin, 0.95)
    generator = np.random.default_rng(1)
    known = Part(floor**2, 1e6)
    cleared = []
    for _ in range(800):
        left, right = generator.normal(0.0, 1.0, (2, n))
        left = left + floor * generator.standard_normal()
        cleared.append(difference(left, right, known).interval(0.95).high < margin)
    assert 0.75 < np.mean(cleared) < 0.9  # 0.8 at the smallest whole n; it rounds up


@pytest.mark.parametrize("floor", [0.36, 1.0])
def test__runs_needed__the_evaluation_error_alone_is_too_large__no_number_helps(floor):
    # (1.96 + 0.84) x 0.36 > 1
    assert runs_needed(0.1, 0.1, 1.0, 0.95, floor) is None
    assert runs_needed(0.1, 0.1, 1.0, 0.95, 0.35) is not None


@pytest.mark.parametrize("n", [2, 3, 4, 9, 40])
def test__provable__is_runs_needed_turned_round(n):
    margin = provable(1.0, n, 0.98)
    assert runs_needed(1.0, 1.0, margin * 1.0001, 0.98) == n
    assert runs_needed(1.0, 1.0, margin * 0.9999, 0.98) == n + 1


@given(RUNS, RUNS, st.floats(0.01, 100), st.floats(1, 60))
def test__difference__with_another_part__variances_add_and_df_stay_between(left, right, more, df):
    plain = difference(left, right)
    found = difference(left, right, Part(more, df))
    if not plain.parts:
        assert found.reason == plain.reason
        return
    assert found.error**2 == pytest.approx(plain.error**2 + more)
    runs_df = len(left) + len(right) - 2
    assert min(len(left) - 1, len(right) - 1, df, runs_df) * (1 - 1e-9) <= found.df
    assert found.df <= min(runs_df + df, 2 * runs_df) * (1 + 1e-9)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.0])
def test__difference__one_side_noisier_and_well_known_documents__covers(n, ratio):
    # Without a bound on the degrees of freedom: down to 0.89 with two runs a side.
    generator = np.random.default_rng(10 * n)
    floor = ratio * math.hypot(1, 5) / math.sqrt(2 * n)
    covered = []
    for _ in range(1500):
        left, right = generator.normal(0, 1, n), generator.normal(0, 5, n)
        left = left + floor * generator.standard_normal()
        part = Part(floor**2 * generator.chisquare(20) / 20, 20.0)
        interval = difference(left, right, part).interval(0.95)
        covered.append(interval.low <= 0 <= interval.high)
    assert np.mean(covered) > 0.9


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
