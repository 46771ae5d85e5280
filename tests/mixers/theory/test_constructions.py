"""Each part of the construction against the paper's definition in exact numbers."""

from fractions import Fraction
from itertools import product

import pytest
import theory_oracle as oracle
import torch

from mixers.theory.context import contextual, contextual_ids, global_layer, shift_layers
from mixers.theory.network import build
from mixers.theory.sizes import Sizes, TheoryError
from mixers.theory.targets import Scrambled
from mixers.theory.tokenwise import quantizer_layers, value_layers

SMALL = [(1, 2, 2), (1, 2, 4), (1, 3, 3), (1, 4, 4), (2, 2, 2), (2, 3, 2), (2, 2, 3)]


def transposed(rows):
    return [list(row) for row in zip(*rows, strict=True)]


def grid(sizes):
    """All of G+ (Theorem 2) or of the positions' grid (Theorem 3), paper orientation."""
    d, n = sizes.d, sizes.n
    if sizes.theorem == 2:
        entries = [[sizes.outside, *range(sizes.K)]] * (d * n)
    else:
        entries = [[j * sizes.K + k for k in range(sizes.K)] for _ in range(d) for j in range(n)]
    for flat in product(*entries):
        yield [list(flat[i * n : (i + 1) * n]) for i in range(d)]


def after(layers, tokens):
    for layer in layers:
        tokens = layer(tokens)
    return tokens


@pytest.mark.parametrize("theorem", [2, 3])
@pytest.mark.parametrize(("d", "n", "K"), SMALL)
def test__context__all_inputs__sparse_and_literal_equal_hardmax_attention(d, n, K, theorem):
    sizes = Sizes(d, n, K, theorem)
    truth = oracle.context_theorem_2 if theorem == 2 else oracle.context_theorem_3
    literal = [*shift_layers(sizes), global_layer(sizes)]
    for place, L in enumerate(grid(sizes)):
        if place % (1 + (K + 1) ** (d * n) // 400):
            continue
        wanted = transposed(truth(L, K))
        assert contextual(sizes, transposed(L)) == wanted, L
        assert after(literal, transposed(L)) == wanted, L


def test__context__theorem_3_two_tokens_of_width_1__first_is_shifted_twice():
    sizes = Sizes(1, 2, 4, 3)
    assert contextual_ids(sizes, [3, 4])[2] == 3  # n + 1 shifts: the printed proof has n
    assert contextual(sizes, [[3], [4]]) == transposed(oracle.context_theorem_3([[3, 4]], 4))


@pytest.mark.parametrize("K", [2, 3, 10])
def test__quantizer__inside_edges_and_outside__floor_or_far_below(K):
    sizes = Sizes(2, 2, K)
    tiny = Fraction(1, 10**9)
    points = [0, 1 - tiny, 1, K - 1, K - tiny, K, K + 5, -tiny, -3, Fraction(1, 2)]
    for a, b in product(points, repeat=2):
        X = [[a, b], [b, 0]]
        wanted = oracle.quantize_2(X, K)
        assert transposed(after(quantizer_layers(sizes), transposed(X))) == wanted


def test__quantizer__positions__floor():
    sizes = Sizes(1, 3, 4, 3)
    X = [[Fraction(7, 2), 0, Fraction(9, 4)]]
    moved = [[x + 4 * j] for j, x in enumerate(X[0])]
    assert transposed(after(quantizer_layers(sizes), moved)) == oracle.quantize_3(X, 4)


@pytest.mark.parametrize("scale", [1, 10**9], ids=["values below t_l", "values above t_l"])
def test__value_mapping__targets_of_any_size__are_reached(scale):
    sizes = Sizes(1, 2, 4)
    scrambled = Scrambled(sizes)

    def target(columns):
        return [[scale * x for x in value] for value in scrambled(columns)]

    layers = value_layers(sizes, target)
    for L in grid(sizes):
        distinct = len(set(L[0])) == 2 and min(L[0]) >= 0
        mapped = transposed(oracle.context_theorem_2(L, 4))
        columns = [(x,) for x in L[0]]
        assert after(layers, mapped) == (target(columns) if distinct else [[0], [0]]), L


def test__value_mapping__target_inside_a_later_window__needs_the_guard():
    """The printed Lemma 7 sets this column to the id of another context, which rewrites it."""
    sizes = Sizes(1, 2, 2)
    first, second = sorted(oracle.ids(oracle.context_theorem_2([[0, 1]], 2), 2))
    layers = value_layers(sizes, lambda columns: [[second], [7]])
    assert after(layers, [[first], [second]]) == [[second], [7]]


@pytest.mark.parametrize("theorem", [2, 3])
@pytest.mark.parametrize(("d", "n", "K"), [(1, 2, 4), (2, 2, 2), (2, 3, 2)])
def test__network__grid_points_and_cube_interiors__gives_the_target(d, n, K, theorem):
    sizes = Sizes(d, n, K, theorem)
    target = Scrambled(sizes)
    network = build(sizes, target)
    cubes = list(product(product(range(K), repeat=d), repeat=n))
    torch.manual_seed(0)
    x = torch.tensor(cubes, dtype=torch.float64)
    for inside in (torch.zeros_like(x), torch.rand_like(x) * 0.999):
        out = network.encoder((x + inside) / K) * K
        for columns, got in zip(cubes, out.tolist(), strict=True):
            same = theorem == 2 and len(set(columns)) < n
            wanted = [[0] * d] * n if same else target(columns)
            assert got == wanted, columns


def test__network__outside_the_cube__gives_zero():
    sizes = Sizes(2, 2, 2)
    network = build(sizes, Scrambled(sizes))
    x = torch.rand(64, 2, 2, dtype=torch.float64)
    x[:, 0, 1] = torch.linspace(1.0, 9.0, 64, dtype=torch.float64)
    assert torch.equal(network.encoder(x), torch.zeros_like(x))


@pytest.mark.parametrize("theorem", [2, 3])
def test__network__number_of_blocks__is_that_of_the_paper(theorem):
    sizes = Sizes(2, 2, 2, theorem)
    network = build(sizes, Scrambled(sizes))
    counts = {name: len(blocks) for name, blocks in network.parts.items()}
    wanted = (
        {"quantizer": 6, "shifts": 4, "global": 1, "value": 1 + 2 + 2 * 6}
        if theorem == 2
        else {"quantizer": 8, "shifts": 8, "global": 1, "value": 2 * 16}
    )
    assert counts == sizes.n_layers == wanted


@pytest.mark.parametrize(
    ("d", "K", "largest_n"), [(2, 2, 4), (3, 2, 7), (1, 16, 5), (2, 8, 3), (1, 256, 2)]
)
def test__sizes__float64__largest_n_is_that_of_the_bit_count(d, K, largest_n):
    """The table of the bit count (2n + 1) d log2 K + log2(B - 1) <= 53; n is at most B."""
    fitting = [n for n in range(2, min(K**d, 12) + 1) if Sizes(d, n, K).fits_float64()]
    assert fitting == list(range(2, largest_n + 1))


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((2, 4, 8), ("t_r", "60 bits", "float64 has 53", "d = 2, n = 4, delta = 1/8", "fits is 3")),
        ((1, 2, 3), ("k/3", "delta = 1/3", "1/2, 1/4")),
        ((2, 3, 8), ("layers", "124,995", "d = 2, n = 3, delta = 1/8")),
    ],
)
def test__network__sizes_beyond_floats__are_refused_with_the_quantity(sizes, words):
    with pytest.raises(TheoryError) as caught:
        Sizes(*sizes).require_network()
    for word in words:
        assert word in str(caught.value)


def test__network__target_so_large_that_its_guard_leaves_floats__is_refused():
    """Ids and guard must stay below 2^53: above, windows of one unit cannot tell ids apart."""
    sizes = Sizes(1, 2, 4)
    largest = 2**50
    x = torch.tensor([[[0.1], [0.6]]], dtype=torch.float64)

    network = build(sizes, lambda columns: [[largest]] * 2)

    assert network.encoder(x).flatten().tolist() == [largest / 4] * 2
    assert largest < network.largest_id <= 2**53
    with pytest.raises(TheoryError, match=r"guard layer moves the ids to .* needs 5\d bits"):
        build(sizes, lambda columns: [[8 * largest]] * 2)


def test__sizes__more_tokens_than_columns__are_refused():
    with pytest.raises(TheoryError, match=r"n = 3 tokens cannot all differ.* B = delta\^-d = 2"):
        Sizes(1, 3, 2)


def test__sizes__delta_that_does_not_divide__is_refused():
    with pytest.raises(TheoryError, match="delta = 2/5"):
        Sizes.of(2, 2, Fraction(2, 5))
