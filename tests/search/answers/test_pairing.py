import numpy as np
import pytest
from scipy import stats
from simulated import question, row

from search.answers.arms import arms_of
from search.answers.pairing import pairing_of
from search.answers.verdicts import compare


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
    assert found.is_used
    assert found.p_value == pytest.approx(stats.pearsonr(left, right).pvalue / 2)
    assert found.sd == pytest.approx(np.std(left - right, ddof=1))


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


@pytest.mark.parametrize("rho", [0.0, 0.95])
@pytest.mark.parametrize("n", [3, 6])
def test__compare__seeds_that_move_together_or_not__the_rule_covers(rho, n):
    generator = np.random.default_rng(int(100 * rho) + n)
    covered = []
    for _ in range(250):
        common = generator.standard_normal(n)
        sides = (
            np.sqrt(rho) * common + np.sqrt(1 - rho) * generator.standard_normal(n)
            for _ in range(2)
        )
        arms = [arm(name, values) for name, values in zip(("sepconv", "bproj"), sides, strict=True)]
        interval = compare("rival", *arms).difference.interval(0.95)
        covered.append(interval.low <= 0 <= interval.high)
    assert 0.9 < np.mean(covered) < 0.985


def test__compare__seeds_that_move_together__a_difference_that_their_noise_hides_is_found():
    common = np.array([0.0, 1.0, -1.0, 0.5, 2.0])
    close = common + 0.01 * np.array([1, -1, 0, 1, -1]) + 0.1
    found = compare("rival", arm("sepconv", close), arm("bproj", common))
    assert found.pairing.is_used
    assert found.difference.estimate == pytest.approx(0.1)
    assert found.difference.df == 4
    assert found.difference.interval(0.99).low > 0
