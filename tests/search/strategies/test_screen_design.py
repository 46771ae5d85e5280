from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.strategies.screen_design import (
    MOST_FACTORIAL,
    MOST_LAYERS,
    hadamard,
    is_order,
    mirrored,
    screening_design,
)

# First rows of Plackett and Burman (1946), page 323; the others are its cyclic shifts.
PUBLISHED = {
    8: "+++-+--",
    12: "++-+++---+-",
    20: "++--++++-+-+----++-",
    24: "+++++-+-++--++--+-+----",
}


def signs(runs):
    """Runs x layers: -1 where a layer is cheap, +1 where not."""
    return np.where(np.array(runs), -1, 1)


@pytest.mark.parametrize("order", sorted(PUBLISHED))
def test__hadamard__orders_of_plackett_and_burman__are_their_matrices_reordered(order):
    first = [1 if sign == "+" else -1 for sign in PUBLISHED[order]]
    shifts = [tuple(np.roll(first, shift)) for shift in range(order - 1)]
    published = [*shifts, (-1,) * (order - 1)]
    # Ours begins with a row of +1: the published one with all signs turned.
    ours = {tuple(-row) for row in hadamard(order)[:, 1:]}
    columns = np.array(published)
    reversed_shifts = columns[:, [0, *range(order - 2, 0, -1)]]
    assert ours in ({tuple(row) for row in columns}, {tuple(row) for row in reversed_shifts})


@given(quarter=st.integers(2, 32))
def test__hadamard__every_order_it_claims__is_orthogonal_and_normalised(quarter):
    order = 4 * quarter
    if not is_order(order):
        with pytest.raises(ValueError, match=str(order)):
            hadamard(order)
        return
    matrix = hadamard(order).astype(int)
    assert set(np.unique(matrix)) == {-1, 1}
    assert (matrix.T @ matrix == order * np.eye(order)).all()
    assert (matrix[0] == 1).all()
    assert (matrix[:, 0] == 1).all()


def test__is_order__up_to_128__leaves_out_those_that_need_other_constructions():
    assert [n for n in range(4, 129, 4) if not is_order(n)] == [52, 92, 100, 116]
    assert not any(is_order(n) for n in range(3, 129) if n % 4)


@pytest.mark.parametrize("n_layers", range(1, MOST_FACTORIAL + 1))
def test__screening_design__few_layers__is_every_stack_once(n_layers):
    design = screening_design(n_layers)
    assert sorted(design.runs) == sorted(product((False, True), repeat=n_layers))
    assert design.kind == "full factorial"


@given(n_layers=st.integers(MOST_FACTORIAL + 1, 48))
def test__screening_design__more_layers__has_resolution_four(n_layers):
    base = screening_design(n_layers).base
    x = signs(base)
    n = len(base)
    assert len(set(base)) == n
    assert (x.sum(axis=0) == 0).all()
    assert (x.T @ x == n * np.eye(n_layers)).all()
    pairs = np.array([x[:, i] * x[:, j] for i, j in combinations(range(n_layers), 2)])
    assert (pairs @ x == 0).all()


@pytest.mark.parametrize(
    ("n_layers", "runs"), [(5, 16), (8, 16), (9, 24), (12, 24), (13, 32), (24, 48), (28, 56)]
)
def test__screening_design__more_layers__takes_twice_the_smallest_order(n_layers, runs):
    assert len(screening_design(n_layers).base) == runs


@given(n_layers=st.integers(1, 200))
def test__screening_design__any_depth__has_the_ladder_first_and_repeats_nothing(n_layers):
    design = screening_design(n_layers)
    quarter = round(n_layers / 4)
    counts = {0, 1, quarter, n_layers // 2, n_layers - quarter, n_layers}
    ladder = design.runs[: len(design.ladder)]
    assert {sum(run) for run in ladder} == counts
    assert len(ladder) == len(counts)
    assert len(set(design.runs)) == len(design.runs)
    assert set(design.base) <= set(design.runs)
    assert len(design.runs) <= len(design.base) + 6
    assert bool(design.base) == (n_layers <= MOST_LAYERS)


@given(n_layers=st.integers(2, 24), data=st.data())
def test__screening_design__cut_short__is_as_balanced_as_its_ladder(n_layers, data):
    design = screening_design(n_layers)
    rest = design.runs[len(design.ladder) :]
    lonely = [run for run in rest if mirrored(run) not in rest]
    cut = rest[: data.draw(st.integers(1, max(1, len(rest))))]
    balance = signs(cut).sum(axis=0) if cut else np.zeros(1)
    # Each run is followed by its mirror image unless the ladder had that already.
    assert np.abs(balance).max() <= len(lonely) + 1


def test__screening_design__four_layers__even_half_comes_before_the_other():
    runs = screening_design(4).runs
    assert [sum(run) for run in runs[:5]] == [0, 4, 2, 1, 3]
    assert [sum(run) % 2 for run in runs[5:]] == [0] * 5 + [1] * 6


def test__screening_design__no_layer__is_refused():
    with pytest.raises(ValueError, match="needs a layer"):
        screening_design(0)
