"""Proposition 4: how far g is from f, which is the measure of the cubes with equal columns."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from math import comb, sqrt

from mixers.theory import expected
from mixers.theory.cases import any_columns, case_of
from mixers.theory.checks import Claim
from mixers.theory.context import contextual_ids
from mixers.theory.sizes import Column, Sizes

HALVINGS = 2
P = 2.0
"""The p of d_p in the table."""
STANDARD_ERRORS = 5.0
SMALLEST = 1e-300
"""A share below this is taken for this one, so that no share of 0 divides."""


@dataclass(frozen=True)
class Share:
    """The part of [0, 1]^(d x n) on which g is 0 though f need not be.

    Attributes:
        sizes: The sizes.
        measured: Share of the cubes whose ids leave [t_l, t_r).
        count: Cubes looked at.
        is_exhaustive: Whether these were all.
    """

    sizes: Sizes
    measured: float
    count: int
    is_exhaustive: bool

    @property
    def expected(self) -> float:
        """1 - prod (1 - i/B)."""
        return expected.duplicate_share(self.sizes.n, self.sizes.B)

    @property
    def tolerance(self) -> float:
        """What a sample of this size may be off."""
        if self.is_exhaustive:
            return 1e-12
        spread = max(self.expected * (1 - self.expected), 1 / self.count)
        return STANDARD_ERRORS * sqrt(spread / self.count)

    @property
    def distance(self) -> float:
        """d_p(f, g) for the f that is 1 in every entry, over [0, 1]^(d x n)."""
        return float((self.sizes.d * self.sizes.n * self.measured) ** (1 / P))

    @property
    def bound(self) -> float:
        """(d n C(n, 2))^(1/p) delta^(d/p): C(n, 2) / B bounds the share."""
        sizes = self.sizes
        return float((sizes.d * sizes.n * comb(sizes.n, 2) / sizes.B) ** (1 / P))


def share(sizes: Sizes, *, sample: int, seed: int) -> Share:
    """Measure the share on all cubes, or on a uniform sample of them."""
    is_exhaustive = sizes.B**sizes.n <= sample
    low, high = sizes.interval
    found = count = 0
    for columns in cubes(sizes, None if is_exhaustive else sample, seed):
        ids = contextual_ids(sizes, list(case_of(sizes, columns).ids))[0]
        found += not all(low <= q < high for q in ids)
        count += 1
    return Share(sizes, found / count, count, is_exhaustive)


def cubes(sizes: Sizes, sample: int | None, seed: int) -> Iterator[tuple[Column, ...]]:
    """Yield the corners of all cubes of [0, 1)^(d x n), or of some drawn at random."""
    if sample is None:
        yield from product(product(range(sizes.K), repeat=sizes.d), repeat=sizes.n)
        return
    generator = random.Random(seed)
    for _ in range(sample):
        yield any_columns(sizes, generator)


def distance_claims(sizes: Sizes, *, sample: int, seed: int) -> list[Claim]:
    """Return the rows of Proposition 4 for delta, delta/2 and delta/4; none for Theorem 3."""
    if sizes.theorem == 3:
        return []
    finer = [Sizes(sizes.d, sizes.n, sizes.K * 2**step) for step in range(HALVINGS + 1)]
    shares = [share(each, sample=sample, seed=seed) for each in finer]
    return [share_claim(each) for each in shares] + [trend_claim(shares)]


def share_claim(found: Share) -> Claim:
    """Return the row of one delta."""
    sampled = "all" if found.is_exhaustive else "sampled"
    return Claim(
        f"Proposition 4: share of the cube where g = 0, delta = {found.sizes.delta}",
        f"{found.expected:.5f}",
        f"{found.measured:.5f} ({sampled} {found.count:,} cubes), d_2(1, g) = {found.distance:.4f}",
        abs(found.measured - found.expected) <= found.tolerance,
    )


def trend_claim(shares: list[Share]) -> Claim:
    """Return the row of the trend."""
    d = shares[0].sizes.d
    steps = pairwise(shares)
    ratios = ", ".join(f"{a.distance / b.distance:.3f}" if b.distance else "-" for a, b in steps)
    slack = [each.bound * (1 + each.tolerance / max(each.expected, SMALLEST)) for each in shares]
    return Claim(
        "Proposition 4: d_p falls as delta^(d/p), p = 2",
        f"<= (d n C(n,2))^(1/2) delta^(d/2); per halving to {2 ** (d / P):.3f}",
        f"per halving {ratios}",
        all(each.distance <= most for each, most in zip(shares, slack, strict=True)),
    )
