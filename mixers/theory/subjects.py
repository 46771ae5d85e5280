"""What is measured: the network itself in float64, or the same construction in exact integers."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from mixers.theory.cases import Case
from mixers.theory.context import contextual, contextual_ids
from mixers.theory.layers import Number
from mixers.theory.network import Network
from mixers.theory.sizes import Sizes
from mixers.theory.tokenwise import Target, assignments, contexts

BATCH = 4096
FRACTION_BITS = 8
"""Points inside a cube are k + j / 2^8 units, exact in float64."""


@dataclass(frozen=True)
class Reading:
    """What became of one input; numbers in units of delta.

    Attributes:
        quantized: Tokens after the quantizer, or None where it was not part of the run.
        swept: Ids before the global layer.
        ids: Ids after it: u^T g_c(L).
        n_acting: Selective shifts that changed something.
        out: Tokens at the end, or None where values were not part of the run.
        permutes: The permuted input gave the permuted result; None where that was not asked.
    """

    quantized: tuple[tuple[Number, ...], ...] | None
    swept: tuple[Number, ...]
    ids: tuple[Number, ...]
    n_acting: int
    out: tuple[tuple[Number, ...], ...] | None
    permutes: bool | None


class NetworkSubject:
    """Runs every block of the network, from points inside the cubes to the values.

    Args:
        network: The network.
        seed: Seed of the points inside the cubes and of the permutations.
    """

    name = "the network, all its layers in float64"

    def __init__(self, network: Network, *, seed: int) -> None:
        self.network = network
        self.generator = random.Random(seed)

    def read(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Reading]]:
        """Yield each case with its reading."""
        source = iter(cases)
        while batch := [case for _, case in zip(range(BATCH), source, strict=False)]:
            yield from zip(batch, self.read_batch(batch), strict=True)

    def read_batch(self, batch: Sequence[Case]) -> list[Reading]:
        """Return the readings of a batch."""
        sizes, network = self.network.sizes, self.network
        x = torch.tensor([self.points(case) for case in batch], dtype=torch.float64)
        x = x * float(sizes.delta)
        quantized = network.run(x, "quantizer")
        swept, acting = self.sweep(quantized)
        mapped = network.run(swept, "global")
        out = network.run(mapped, "value")
        permutes = [None] * len(batch) if sizes.theorem == 3 else self.permutes(x, out)
        columns = zip(
            self.units(quantized),
            self.scores(swept),
            self.scores(mapped),
            acting.tolist(),
            self.units(out),
            permutes,
            strict=True,
        )
        return [Reading(*values) for values in columns]

    def points(self, case: Case) -> list[list[float]]:
        """Return a point of the cube of a case, in units; what is outside [0, 1) stays outside."""
        sizes, draw = self.network.sizes, self.generator.randrange
        parts = 2**FRACTION_BITS
        beyond = (-1 / parts, -float(sizes.K), float(sizes.K), 2.5 * sizes.K)
        return [
            [beyond[draw(4)] if entry < 0 else entry + draw(parts) / parts for entry in column]
            for column in case.columns
        ]

    def sweep(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return x after the shifts, and how many of them changed each sequence."""
        acting = torch.zeros(len(x), dtype=torch.long)
        for index in self.network.parts["shifts"]:
            with torch.no_grad():
                moved = self.network.encoder.blocks[index](x)
            acting += (moved != x).flatten(1).any(1)
            x = moved
        return x, acting

    def permutes(self, x: Tensor, out: Tensor) -> list[bool | None]:
        """Return for each sequence whether permuted tokens give the permuted output, to the bit."""
        order = permutation(x.shape[1], self.generator)
        again = self.network.run(x[:, order], *self.network.parts)
        return [bool(same) for same in (again == out[:, order]).flatten(1).all(1)]

    def scores(self, x: Tensor) -> list[tuple[Number, ...]]:
        """Return the ids of all tokens."""
        u = torch.tensor(self.network.sizes.u, dtype=torch.float64)
        return [tuple(exact(s) for s in row) for row in ((x * self.network.sizes.K) @ u).tolist()]

    def units(self, x: Tensor) -> list[tuple[tuple[Number, ...], ...]]:
        """Return all tokens in units of delta."""
        rows = (x * self.network.sizes.K).tolist()
        return [tuple(tuple(exact(e) for e in token) for token in row) for row in rows]


class ExactSubject:
    """Runs the sparse form in Python's integers, which have no limit, from grid points on.

    Args:
        sizes: The sizes.
        target: The values; None = stop after the contextual mapping.
        seed: Seed of the permutations.
    """

    name = "exact integers, only the layers that act"

    def __init__(self, sizes: Sizes, target: Target | None, *, seed: int) -> None:
        self.sizes = sizes
        self.generator = random.Random(seed)
        self.values: dict[Number, tuple[Number, ...]] | None = None
        if target is not None:
            self.values = {
                q: tuple(value)
                for columns in contexts(sizes)
                for q, _, value in assignments(sizes, columns, target)
            }

    def read(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Reading]]:
        """Yield each case with its reading."""
        for case in cases:
            yield case, self.read_one(case)

    def read_one(self, case: Case) -> Reading:
        """Return one reading."""
        ids, swept, acting = contextual_ids(self.sizes, list(case.ids))
        permutes = None
        if self.sizes.theorem == 2:
            order = permutation(self.sizes.n, self.generator)
            again = contextual_ids(self.sizes, [case.ids[j] for j in order])[0]
            permutes = again == [ids[j] for j in order]
        return Reading(None, tuple(swept), tuple(ids), acting, self.outputs(case, ids), permutes)

    def outputs(self, case: Case, ids: Sequence[Number]) -> tuple[tuple[Number, ...], ...] | None:
        """Return the values: those of the window that an id falls into, 0 outside [t_l, t_r)."""
        if self.values is None:
            return None
        low, high = self.sizes.interval
        zero = (0,) * self.sizes.d
        mapped = contextual(self.sizes, [list(token) for token in case.tokens])
        return tuple(
            self.values.get(q, tuple(z)) if self.sizes.theorem == 3 or low <= q < high else zero
            for q, z in zip(ids, mapped, strict=True)
        )


def permutation(n: int, generator: random.Random) -> list[int]:
    """Draw an order of n tokens other than the given one."""
    while True:
        order = generator.sample(range(n), n)
        if order != list(range(n)):
            return order


def exact(number: float) -> Number:
    """Return a float as the integer or fraction that it is."""
    return int(number) if number.is_integer() else Fraction(number)
