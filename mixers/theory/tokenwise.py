"""The feed-forward parts of the proof: quantizer (Lemma 5) and value mapping (Lemma 7)."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

from mixers.theory.context import contextual
from mixers.theory.layers import Number, TokenLayer, Tokens, dot
from mixers.theory.sizes import Column, Sizes

Target = Callable[[Sequence[Column]], Sequence[Sequence[Number]]]
"""The function on cubes: n columns of the grid (entries 0 to K - 1, in units, in their order) to n
columns of values, in units of delta. For Theorem 2 it must be permutation-equivariant."""


def unit(sizes: Sizes, i: int) -> tuple[int, ...]:
    """Return the unit vector e_i."""
    return tuple(int(i == k) for k in range(sizes.d))


def quantizer_layers(sizes: Sizes) -> list[TokenLayer]:
    """Return g_q (Lemma 5, appendix B.4; C.1 for Theorem 3): row by row, floor to the grid.

    With Theorem 2 the first layer of each row sends what lies outside [0, 1) to -delta^(-nd).
    """
    layers = []
    cubes = sizes.K if sizes.theorem == 2 else sizes.n * sizes.K
    for i in range(sizes.d):
        e = unit(sizes, i)
        if sizes.theorem == 2:
            out = sizes.outside
            layers.append(TokenLayer(e, 0, (0, sizes.K), (-1, 0, -1), (out, 0, out), e))
        layers += [TokenLayer(e, -k, (0, 1), (0, -1, 0), (0, 0, 0), e) for k in range(cubes)]
    return layers


def contexts(sizes: Sizes) -> Iterator[tuple[Column, ...]]:
    """Yield the contexts that have values: Theorem 2 sets of columns, Theorem 3 all sequences."""
    columns = [column_of(sizes, place) for place in range(sizes.B)]
    if sizes.theorem == 2:
        yield from combinations(columns, sizes.n)
    else:
        yield from product(columns, repeat=sizes.n)


def column_of(sizes: Sizes, place: int) -> Column:
    """Return the column of the grid whose id is `place`."""
    return tuple(place // step % sizes.K for step in sizes.u)


def placed(sizes: Sizes, columns: Sequence[Column]) -> Tokens:
    """Return what the quantizer gives for a cube: Theorem 3 adds K j to all entries of token j."""
    offset = sizes.K if sizes.theorem == 3 else 0
    return [[x + offset * j for x in column] for j, column in enumerate(columns)]


def value_layers(sizes: Sizes, target: Target) -> list[TokenLayer]:
    """Return g_v (Lemma 7, appendix B.6), one window for each id of each context.

    Theorem 2 begins with the layers that clear what lies outside [t_l, t_r). Where some target
    column has u^T A >= t_l, it could fall into the window of a later layer and be rewritten, which
    the printed proof overlooks; then one guard layer moves all contexts out of the targets' way
    first, and the windows with them.
    """
    pairs = [pair for columns in contexts(sizes) for pair in assignments(sizes, columns, target)]
    lowest = min(q for q, _, _ in pairs)
    highest = max(dot(sizes.u, value) for _, _, value in pairs)
    guard = 0 if highest < lowest else power_above(highest)
    layers = clearing_layers(sizes) if sizes.theorem == 2 else []
    if guard:
        layers.append(TokenLayer(sizes.u, 0, (lowest,), (0, 0), (0, 1), scaled(sizes, guard)))
    half = Fraction(1, 2)
    for q, token, value in pairs:
        moved = [token[0] + guard, *token[1:]]
        out = tuple(a - x for a, x in zip(value, moved, strict=True))
        layers.append(TokenLayer(sizes.u, -(q + guard), (-half, half), (0, 0, 0), (0, 1, 0), out))
    return layers


def assignments(
    sizes: Sizes, columns: Sequence[Column], target: Target
) -> list[tuple[Number, list[Number], Sequence[Number]]]:
    """Return (id, token of g_c, value) for each token of one context."""
    mapped = contextual(sizes, placed(sizes, columns))
    values = target(columns)
    return [(dot(sizes.u, z), z, a) for z, a in zip(mapped, values, strict=True)]


def clearing_layers(sizes: Sizes) -> list[TokenLayer]:
    """Return the layers that set to 0 every token whose id is outside [t_l, t_r)."""
    low, high = sizes.interval
    drop = -power_above(sizes.largest_entry)
    clear = TokenLayer(sizes.u, 0, (low, high), (0, 0, 0), (1, 0, 1), (drop,) * sizes.d)
    rows = [unit(sizes, i) for i in range(sizes.d)]
    return [clear] + [TokenLayer(e, 0, (0,), (-1, 0), (0, 0), e) for e in rows]


def power_above(number: Number) -> int:
    """Return a power of two above a number; it keeps sums exact in floats."""
    return 1 << max(int(number) + 1, 1).bit_length()


def scaled(sizes: Sizes, factor: int) -> tuple[int, ...]:
    """Return factor e_1."""
    return (factor,) + (0,) * (sizes.d - 1)
