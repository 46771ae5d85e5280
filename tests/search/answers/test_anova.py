import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from search.answers.anova import (
    Estimates,
    Squares,
    f_test,
    indicators,
    residual,
    seeds_f_test,
    two_way_residual,
)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=5).filter(lambda s: sum(s) > len(s)),
    seed=st.integers(0, 2**16),
)
def test__f_test__groups_of_any_sizes__is_scipys_one_way_test(sizes, seed):
    y = np.random.default_rng(seed).normal(size=sum(sizes))
    groups = np.repeat(range(len(sizes)), sizes)
    within = residual(indicators(groups.tolist()), y)
    found = f_test(residual(np.ones((len(y), 1)), y) - within, within)
    expected = stats.f_oneway(*(y[groups == group] for group in range(len(sizes))))
    assert found.f == pytest.approx(expected.statistic, rel=1e-8)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-7)
    assert (found.df1, found.df2) == (len(sizes) - 1, sum(sizes) - len(sizes))


def test__residual__columns_that_repeat_each_other__have_the_rank_counted_once():
    y = np.array([1.0, 2.0, 4.0, 9.0])
    line = np.arange(4.0)[:, None]
    plain = np.hstack([np.ones((4, 1)), line])
    doubled = np.hstack([plain, 3 * line + 1])
    assert residual(doubled, y).df == 2
    assert residual(doubled, y).total == pytest.approx(residual(plain, y).total)
    slope = stats.linregress(np.arange(4.0), y)
    assert residual(plain, y).total == pytest.approx((1 - slope.rvalue**2) * ((y - 4) ** 2).sum())


def test__f_test__nothing_left_to_be_the_error__is_none():
    y = np.array([1.0, 3.0])
    exact = residual(np.eye(2), y)
    assert (exact.total, exact.df) == (0.0, 0)
    assert f_test(Squares(2.0, 1), exact) is None
    assert f_test(Squares(2.0, 1), Squares(0.0, 5)) is None
    assert f_test(Squares(2.0, 0), Squares(1.0, 5)) is None


def test__estimates__estimable_contrast__gives_the_least_squares_estimate():
    generator = np.random.default_rng(0)
    model = np.hstack([np.ones((9, 1)), generator.normal(size=(9, 2))])
    y = generator.normal(size=9)
    weights = Estimates(model).weights({1: 1.0, 2: -1.0})
    b = np.linalg.solve(model.T @ model, model.T @ y)
    assert weights @ y == pytest.approx(b[1] - b[2])
    inverse = np.linalg.inv(model.T @ model)
    assert weights @ weights == pytest.approx(inverse[1, 1] + inverse[2, 2] - 2 * inverse[1, 2])


def test__estimates__columns_that_always_move_together__are_not_told_apart():
    x = np.array([[1.0, 0, 0], [1, 1, 1], [1, 1, 1], [1, 0, 0]])
    assert Estimates(x).weights({1: 1.0}) is None
    assert Estimates(x).weights({1: 1.0, 2: 1.0}) @ np.array([0.0, 3, 5, 2]) == pytest.approx(3.0)


def test__two_way_residual__table__is_what_both_margins_leave():
    table = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 5.0]])
    found = two_way_residual(table)
    cells, seeds = np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)
    model = np.hstack([indicators(cells.tolist()), indicators(seeds.tolist())])
    assert found.total == pytest.approx(residual(model, table.ravel()).total)
    assert found.df == 2


def test__two_way_residual__stacks_and_seeds_that_only_add__leave_nothing():
    table = np.arange(4.0)[:, None] + np.array([0.1, 0.2, 0.7])
    assert two_way_residual(table).total == 0.0


@pytest.mark.parametrize("sds", [(0.01,) * 5, (0.04, 0.005, 0.004, 0.005, 0.01)])
@pytest.mark.parametrize("n_seeds", [3, 4, 8])
def test__seeds_f_test__nothing_differs_but_the_noise__is_seldom_significant(sds, n_seeds):
    generator = np.random.default_rng(1)
    tables = 3.0 + np.array(sds)[:, None] * generator.standard_normal((600, 5, n_seeds))
    tables += 0.01 * generator.standard_normal((600, 1, n_seeds))
    wrong = sum(seeds_f_test(table).p_value <= 0.05 for table in tables)
    assert wrong <= stats.binom.ppf(0.999, 600, 0.06)


def test__seeds_f_test__two_groups__is_the_paired_t_test_squared():
    left, right = np.array([1.0, 2.0, 4.0, 5.0]), np.array([3.0, 3.1, 5.2, 8.3])
    t = stats.ttest_rel(left, right)
    found = seeds_f_test(np.stack([left, right]))
    assert found.f == pytest.approx(t.statistic**2)
    assert found.p_value == pytest.approx(t.pvalue)
    assert (found.df1, found.df2) == (1, 3)


@given(st.integers(0, 2**16), st.integers(2, 6), st.integers(2, 6))
def test__seeds_f_test__any_table__lies_between_the_plain_and_the_most_careful_test(seed, k, n):
    table = np.random.default_rng(seed).standard_normal((k, n))
    found = seeds_f_test(table)
    effect = Squares(n * float(np.var(table.mean(axis=1)) * k), k - 1)
    plain = f_test(effect, two_way_residual(table))
    assert found.f == pytest.approx(plain.f)
    assert 1 - 1e-9 <= found.df1 <= k - 1 + 1e-9
    assert found.df2 / found.df1 == pytest.approx(n - 1)


@pytest.mark.parametrize("table", [np.ones((1, 4)), np.ones((3, 1)), np.ones((3, 4))])
def test__seeds_f_test__no_noise_to_hold_against__none(table):
    assert seeds_f_test(table) is None
