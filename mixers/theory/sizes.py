"""The sizes of a construction and the numbers that the proof derives from them."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Literal

from mixers.errors import MixerError

FLOAT64_BITS = 53
MOST_LAYERS = 20_000
"""Layers of the largest network that is built."""

MOST_BITS = 1000
"""Bits of the largest integer that is written in full; larger ones overflow a float's format."""

Column = tuple[int, ...]
"""One token in units of delta, d integers."""


class TheoryError(MixerError):
    """A construction was asked for sizes at which it does not exist or is not exact."""


def in_words(number: float | Fraction, style: str = "") -> str:
    """Return a number in a style of `format`, or with seven digits where it is very large."""
    if int(number).bit_length() <= MOST_BITS:
        return format(number, style)
    return f"{Decimal(int(number)):.6e}"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the network of Theorem 2 or 3; every quantity is in units of delta.

    Args:
        d: Features per token.
        n: Tokens, at least 2.
        K: 1 / delta, at least 2.
        theorem: 2 (permutation-equivariant) or 3 (positional).

    Raises:
        TheoryError: Sizes for which the construction does not exist.
    """

    d: int
    n: int
    K: int
    theorem: Literal[2, 3] = 2

    def __post_init__(self) -> None:
        if self.d < 1 or self.n < 2 or self.K < 2:
            raise TheoryError(
                f"d >= 1, n >= 2 and 1/delta >= 2 are needed, got d = {self.d}, n = {self.n}, "
                f"1/delta = {self.K}"
            )
        if self.theorem == 2 and self.n > self.B:
            raise TheoryError(
                f"n = {self.n} tokens cannot all differ: there are only B = delta^-d = {self.B} "
                f"columns (d = {self.d}, delta = 1/{self.K}); take n <= {self.B} or a smaller delta"
            )

    @classmethod
    def of(cls, d: int, n: int, delta: Fraction, theorem: Literal[2, 3] = 2) -> "Sizes":
        """Return the sizes of a width `delta` of the cubes.

        Raises:
            TheoryError: 1 / delta is no integer, or see the class.
        """
        if delta <= 0 or (1 / delta).denominator != 1:
            raise TheoryError(
                f"delta = {delta} does not divide [0, 1] into equal cubes; take 1/2, 1/3, 1/4, ..."
            )
        return cls(d, n, int(1 / delta), theorem)

    @property
    def delta(self) -> Fraction:
        """The width of the cubes."""
        return Fraction(1, self.K)

    @property
    def B(self) -> int:  # noqa: N802
        """delta^-d, the number of different columns."""
        return int(self.K**self.d)

    @cached_property
    def u(self) -> tuple[int, ...]:
        """The vector whose product with a column is the column's id."""
        return tuple(self.K**i for i in range(self.d))

    @property
    def position_step(self) -> int:
        """How much one position more adds to an id in Theorem 3: K (1 + K + ... + K^(d-1))."""
        return self.K * sum(self.u)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The ids that the selective shifts sweep over, ascending."""
        starts = range(self.n) if self.theorem == 3 else range(1)
        return tuple(j * self.position_step + step for j in starts for step in range(self.B))

    @property
    def last_scale(self) -> int:
        """The factor of the global layer."""
        factor = self.n * self.K if self.theorem == 3 else 1
        return int(factor * self.B ** (self.n + 1))

    @property
    def interval(self) -> tuple[int, int]:
        """[t_l, t_r) of Lemma 6."""
        base = self.B ** (2 * self.n) * (self.B - 1)
        return int(base), int(base * self.B)

    @property
    def outside(self) -> int:
        """What the quantizer writes for an entry outside [0, 1): -delta^(-nd)."""
        return -self.K * int(self.B**self.n)

    @property
    def largest_entry(self) -> int:
        """A bound of all entries after the contextual mapping, all three categories."""
        low = -self.outside * sum(self.u)
        top = low + self.B
        for _ in range(self.n):
            top = self.B + self.B * (top + low)
        return top * (1 + self.last_scale)

    @property
    def largest_id(self) -> int:
        """A bound of the ids that the value mapping must tell apart."""
        if self.theorem == 2:
            return self.interval[1]
        top = self.n * self.K * int(self.B ** (self.n + 1))
        return top * (1 + self.last_scale)

    @property
    def n_layers(self) -> dict[str, int]:
        """Layers of each part, by the formulas of the paper."""
        d, n, B = self.d, self.n, self.B
        if self.theorem == 2:
            value = 1 + d + n * comb(B, n)
            return {"quantizer": d * (self.K + 1), "shifts": B, "global": 1, "value": value}
        return {"quantizer": d * n * self.K, "shifts": n * B, "global": 1, "value": n * B**n}

    def fits_float64(self) -> bool:
        """Whether delta is a power of two and every id of Lemma 6 is exact in float64."""
        return self.K & (self.K - 1) == 0 and self.largest_id <= 2**FLOAT64_BITS

    def is_small(self) -> bool:
        """Whether the network has few enough layers to be built."""
        return sum(self.n_layers.values()) <= MOST_LAYERS

    def require_network(self) -> None:
        """Refuse sizes whose network would not be exact in float64 or be too deep.

        Raises:
            TheoryError: Names the quantity that does not fit and the largest n that would.
        """
        where = f"d = {self.d}, n = {self.n}, delta = {self.delta}"
        if self.K & (self.K - 1):
            raise TheoryError(
                f"the grid points k/{self.K} are not exact in floats ({where}), so some would be "
                "quantised to the wrong cube; take delta = 1/2, 1/4, 1/8, ... for a network"
            )
        if self.largest_id > 2**FLOAT64_BITS:
            name = "the end t_r of the ids' interval" if self.theorem == 2 else "the largest id"
            raise TheoryError(
                f"{name} is {in_words(self.largest_id)} units of delta and needs "
                f"{self.largest_id.bit_length()} bits, float64 has {FLOAT64_BITS} ({where}); "
                + self.advice()
            )
        if not self.is_small():
            raise TheoryError(
                f"the network has {in_words(sum(self.n_layers.values()), ',')} layers, "
                f"{in_words(self.n_layers['value'], ',')} of them to map values ({where}); "
                f"at most {MOST_LAYERS:,} are built; take a smaller d or n, or a larger delta"
            )

    def advice(self) -> str:
        """Say the largest n whose ids fit float64."""
        fitting = [
            n
            for n in range(2, self.n)
            if Sizes(self.d, n, self.K, self.theorem).largest_id <= 2**FLOAT64_BITS
        ]
        if fitting:
            return f"the largest n that fits is {fitting[-1]}"
        return "no n fits; take a smaller d or a larger delta"
