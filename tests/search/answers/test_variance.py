import math

import numpy as np
import pytest
from scipy import stats

from search.answers.intervals import Interval, welch
from search.answers.variance import few_words, pooled


def test__pooled__variances_agree__by_degrees_of_freedom():
    pool = pooled([[1.0, 3.0], [3.0, 7.0], [4.0]])
    assert pool.df == 2
    assert pool.sd == pytest.approx(math.sqrt((2.0 + 8.0) / 2))
    assert pool.p_value == pytest.approx(stats.bartlett([1.0, 3.0], [3.0, 7.0]).pvalue)


def test__pooled__ten_times_the_noise_in_one_architecture__is_not_pooled():
    generator = np.random.default_rng(0)
    pool = pooled([generator.normal(0, 0.01, 6), generator.normal(0, 0.1, 6)])
    assert pool.sd is None
    assert pool.p_value < 0.01
    assert not pool.agrees


@pytest.mark.parametrize("groups", [[], [[1.0]], [[1.0, 1.0], [2.0, 2.0]]])
def test__pooled__nothing_varies__no_sd_and_no_test(groups):
    pool = pooled(groups)
    assert (pool.sd, pool.p_value) == (None, None)


def test__few_words__fewer_than_six__says_so():
    assert few_words(5.9) == "fewer than 6 degrees of freedom"
    assert few_words(6) == ""


def pooled_interval(groups):
    """The interval that a pool of all architectures would give, where it is allowed."""
    pool = pooled(groups)
    if pool.sd is None:
        return welch(groups[0], groups[1], 0.95)
    error = pool.sd * math.sqrt(1 / len(groups[0]) + 1 / len(groups[1]))
    half = stats.t.ppf(0.975, pool.df) * error
    middle = np.mean(groups[0]) - np.mean(groups[1])
    return Interval(middle, 0.95, middle - half, middle + half, pool.df)


def test__verdict_intervals__reference_three_times_noisier__pooling_would_cover_too_little():
    # Why verdicts take each architecture's own variance whatever Bartlett's test says.
    generator = np.random.default_rng(1)
    hits = {"own": 0, "pooled": 0}
    for _ in range(1500):
        groups = [generator.normal(0, sd, 3) for sd in (1.0, 3.0, 1.0, 1.0)]
        own, shared = welch(groups[0], groups[1], 0.95), pooled_interval(groups)
        hits["own"] += own.low <= 0 <= own.high
        hits["pooled"] += shared.low <= 0 <= shared.high
    assert hits["own"] / 1500 > 0.93
    assert hits["pooled"] / 1500 < 0.92
