"""Functions on cubes to build and check networks with."""

from collections.abc import Sequence

from mixers.theory.sizes import Column, Sizes

MODULUS = 2_147_483_647


class Scrambled:
    """Values delta to 1, never 0, mixed from a token's column and the context.

    Theorem 2: the context is the multiset of columns, so the function is permutation-equivariant.
    Theorem 3: it is the sequence, and the token's position counts.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes

    def __call__(self, columns: Sequence[Column]) -> list[list[int]]:
        """Return n columns of values in units of delta."""
        ids = [sum(k * x for k, x in zip(self.sizes.u, c, strict=True)) for c in columns]
        ordered = sorted(ids) if self.sizes.theorem == 2 else ids
        seed = 1
        for item in ordered:
            seed = (seed * 48_271 + item + 1) % MODULUS
        places = [0] * len(ids) if self.sizes.theorem == 2 else range(len(ids))
        return [
            [self.mixed(seed, item, place, i) for i in range(self.sizes.d)]
            for item, place in zip(ids, places, strict=True)
        ]

    def mixed(self, seed: int, item: int, place: int, i: int) -> int:
        """Return one entry, 1 to K."""
        number = seed
        for part in (item, place, i):
            number = (number * 48_271 + part + 1) % MODULUS
        return number // 7 % self.sizes.K + 1
