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
