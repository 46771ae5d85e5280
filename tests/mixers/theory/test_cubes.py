"""Step 1: functions on cubes, and the width that an asked distance needs."""

import pytest
import torch

from mixers.theory.cubes import (
    FUNCTIONS,
    OnCubes,
    choose_delta,
    fineness,
    mean,
    require_target,
    uniform,
)
from mixers.theory.network import build
from mixers.theory.sizes import Sizes, TheoryError


@pytest.mark.parametrize("name", FUNCTIONS)
def test__functions__boundary_and_order__compact_support_and_equivariance(name):
    function = FUNCTIONS[name]
    x = torch.rand(20, 3, 2, dtype=torch.float64)
    edge = x.clone()
    edge[:, 1, 0] = torch.tensor([0.0, 1.0] * 10)
    assert not function(edge).any()
    order = [2, 0, 1]
    same = torch.allclose(function(x[:, order]), function(x)[:, order], atol=1e-15)
    assert same == (name != "previous")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.cumsum(1), "not permutation-equivariant"),
        (lambda x: x[:, :1], "returns \\[200, 1, 2\\] for vectors \\[200, 3, 2\\]"),
        (lambda x: x / 0, "not finite"),
        (lambda x: x.nope, "the target fails: AttributeError"),
    ],
)
def test__require_target__no_target_of_theorem_2__is_refused(function, words):
    with pytest.raises(TheoryError, match=words):
        require_target(function, 2, 3, theorem=2)


def test__require_target__order_counts_in_theorem_3__and_single_precision_will_do():
    require_target(lambda x: x.cumsum(1), 2, 3, theorem=3)
    require_target(lambda x: mean(x.float()), 2, 3, theorem=2)


def test__on_cubes__point__has_the_value_at_the_centre():
    sizes = Sizes(1, 2, 4)
    target = OnCubes(lambda x: x * x, sizes)
    x = torch.tensor([[[0.26], [0.99]]], dtype=torch.float64)
    assert target.at(x).flatten().tolist() == [0.375**2, 0.875**2]
    assert target([(1,), (3,)]) == [[4 * 0.375**2], [4 * 0.875**2]]


def test__fineness__linear_function__is_that_of_uniform_rounding():
    """f(X) = X is off by U(-delta/2, delta/2): d_2 = (d n delta^2 / 12)^(1/2)."""
    found = fineness(lambda x: x, Sizes(2, 3, 8))
    assert found.distance == pytest.approx((6 / 64 / 12) ** 0.5, rel=0.01)
    assert found.largest == pytest.approx(1 / 16, rel=0.01)


def test__choose_delta__asked_distance__first_width_that_reaches_a_third():
    tried = choose_delta(mean, 1, 2, eps=0.1)
    assert [each.K for each in tried] == [2, 4, 8, 16]
    assert [each.distance <= 0.1 / 3 for each in tried] == [False, False, False, True]


def test__network__continuous_function__is_its_cubes_away_from_duplicates():
    sizes = Sizes(1, 2, 8)
    cubes = OnCubes(mean, sizes)
    x = uniform(sizes, points=500, seed=1)
    out = build(sizes, cubes).encoder(x)
    places = (x * 8).floor().squeeze(2)
    distinct = places[:, 0] != places[:, 1]
    wanted = torch.where(distinct[:, None, None], cubes.at(x), 0.0)
    # Ids reach 8^5 7 delta: the spacing of floats there is 2^-38.
    torch.testing.assert_close(out, wanted, atol=2**-38, rtol=0)
