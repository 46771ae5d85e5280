"""The inputs that a certificate looks at: all grid points, or a seeded sample of each category."""

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from mixers.theory.sizes import Column, Sizes, in_words
from mixers.theory.tokenwise import placed

EXHAUSTIVE_UP_TO = 1_000_000


@dataclass(frozen=True)
class Case:
    """A grid point as the quantizer gives it.

    Attributes:
        tokens: n columns in units of delta.
        ids: Their ids.
        category: 1 distinct columns, 2 duplicates, 3 an entry outside [0, 1).
        columns: The same without what positions add.
    """

    tokens: tuple[Column, ...]
    ids: tuple[int, ...]
    category: int
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Selection:
    """Which inputs are looked at.

    Attributes:
        total: How many there are.
        sampled: How many are drawn; None = all are taken.
        seed: Seed of the draw and of the points inside the cubes.
    """

    total: int
    sampled: int | None
    seed: int

    @property
    def count(self) -> int:
        """How many inputs are looked at."""
        return self.total if self.sampled is None else self.sampled

    @property
    def words(self) -> str:
        """The selection in words."""
        if self.sampled is None:
            return f"all {self.total:,}"
        return (
            f"a sample of {self.sampled:,} out of {in_words(self.total, '.3g')}, seed {self.seed}"
        )


def select(sizes: Sizes, *, sample: int, seed: int, exhaustive_up_to: int) -> Selection:
    """Return all inputs where there are few enough, else a sample."""
    per_entry = sizes.K + 1 if sizes.theorem == 2 else sizes.K
    total = int(per_entry ** (sizes.d * sizes.n))
    return Selection(total, None if total <= exhaustive_up_to else sample, seed)


def cases(sizes: Sizes, selection: Selection) -> Iterator[Case]:
    """Yield the inputs; a sample of Theorem 2 has the three categories in turn."""
    if selection.sampled is not None:
        yield from drawn(sizes, selection.sampled, random.Random(selection.seed))
        return
    entries = [*range(sizes.K)] + ([sizes.outside] if sizes.theorem == 2 else [])
    for columns in product(product(entries, repeat=sizes.d), repeat=sizes.n):
        yield case_of(sizes, columns)


def drawn(sizes: Sizes, count: int, generator: random.Random) -> Iterator[Case]:
    """Yield random inputs."""
    kinds: tuple[Callable[[Sizes, random.Random], tuple[Column, ...]], ...] = (
        (any_columns,)
        if sizes.theorem == 3
        else (distinct_columns, repeated_columns, outside_columns)
    )
    for index in range(count):
        yield case_of(sizes, kinds[index % len(kinds)](sizes, generator))


def any_columns(sizes: Sizes, generator: random.Random) -> tuple[Column, ...]:
    """Draw a grid point of [0, 1)^(d x n)."""
    return tuple(
        tuple(generator.randrange(sizes.K) for _ in range(sizes.d)) for _ in range(sizes.n)
    )


def distinct_columns(sizes: Sizes, generator: random.Random) -> tuple[Column, ...]:
    """Draw a grid point whose columns all differ."""
    if sys.maxsize < sizes.B:  # more than a range can count
        while len(set(columns := any_columns(sizes, generator))) < sizes.n:
            pass
        return columns
    places = generator.sample(range(sizes.B), sizes.n)
    return tuple(tuple(place // step % sizes.K for step in sizes.u) for place in places)


def repeated_columns(sizes: Sizes, generator: random.Random) -> tuple[Column, ...]:
    """Draw a grid point with at least two equal columns."""
    columns = list(any_columns(sizes, generator))
    here, there = generator.sample(range(sizes.n), 2)
    columns[here] = columns[there]
    return tuple(columns)


def outside_columns(sizes: Sizes, generator: random.Random) -> tuple[Column, ...]:
    """Draw a grid point with at least one entry outside."""
    rows = [list(column) for column in any_columns(sizes, generator)]
    for _ in range(generator.randint(1, sizes.n * sizes.d)):
        rows[generator.randrange(sizes.n)][generator.randrange(sizes.d)] = sizes.outside
    return tuple(tuple(row) for row in rows)


def case_of(sizes: Sizes, columns: tuple[Column, ...]) -> Case:
    """Return a grid point with what a reading of it needs."""
    tokens = tuple(tuple(map(int, token)) for token in placed(sizes, columns))
    ids = tuple(sum(k * x for k, x in zip(sizes.u, token, strict=True)) for token in tokens)
    if any(x < 0 for column in columns for x in column):
        category = 3
    else:
        category = 1 if len(set(ids)) == sizes.n else 2
    return Case(tokens, ids, category, columns)
