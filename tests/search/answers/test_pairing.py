import numpy as np
import pytest
from scipy import stats
from simulated import question, row

from search.answers.arms import arms_of
from search.answers.pairing import pairing_of


def arm(name, values, first_seed=1):
    rows = [
        row(k, (name,) * 4, value, phase="confirm", seed=first_seed + k, seed_index=k + 1)
        for k, value in enumerate(values)
    ]
    return arms_of(rows, question())[0]


def test__pairing__runs_that_move_together__helps_and_says_by_how_much():
    generator = np.random.default_rng(0)
    shared = generator.normal(0, 1, 8)
    left, right = shared + generator.normal(0, 0.1, 8), shared + generator.normal(0, 0.1, 8)
    found = pairing_of(arm("sepconv", left), arm("bproj", right))
    assert found.n == 8
    assert found.correlation == pytest.approx(stats.pearsonr(left, right).statistic)
    ends = stats.pearsonr(left, right).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    paired = stats.ttest_rel(left, right).confidence_interval(0.95)
    apart = stats.ttest_ind(left, right, equal_var=False).confidence_interval(0.95)
    ratio = (paired.high - paired.low) / (apart.high - apart.low)
    assert found.width_ratio == pytest.approx(ratio)
    assert found.helps


def test__pairing__independent_runs__costs_degrees_of_freedom():
    generator = np.random.default_rng(1)
    ratios = [
        pairing_of(
            arm("sepconv", generator.normal(0, 1, 4)), arm("bproj", generator.normal(0, 1, 4))
        ).width_ratio
        for _ in range(200)
    ]
    assert np.median(ratios) > 1.05


@pytest.mark.parametrize(
    ("left", "right", "first"),
    [([1.0, 2.0], [1.0, 2.0], 1), ([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], 2), ([1.0] * 3, [1.0] * 3, 1)],
    ids=["two seeds", "two common seeds", "identical"],
)
def test__pairing__too_little_in_common__none(left, right, first):
    assert pairing_of(arm("sepconv", left), arm("bproj", right, first)) is None
