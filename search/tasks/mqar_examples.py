"""Examples of multi-query associative recall, drawn many at a time."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from search.data.splits import SPLITS, Split
from search.data.streams import Longs


@dataclass(frozen=True)
class Recall:
    """Examples with the same number of pairs.

    Attributes:
        ids: What the model reads, (B, N).
        columns: Where the queries stand, ascending, (B, P).
        values: The values of the queried keys, (B, P).
    """

    ids: Longs
    columns: Longs
    values: Longs


@dataclass(frozen=True)
class RecallSizes:
    """Sizes of an example, as `MqarConfig` has them.

    Their text goes into fingerprints of data, so it says of `spread` only what is not 0.
    """

    vocab_size: int
    seq_len: int
    n_pairs: int
    gap_power: float
    spread: int = field(default=0, repr=False)

    def __str__(self) -> str:
        return f"{self!r} spread={self.spread}" if self.spread else repr(self)

    @property
    def n_paired(self) -> int:
        """Places before the first that a query may have: pairs and the blanks among them."""
        return 2 * self.n_pairs + self.spread

    @property
    def n_keys(self) -> int:
        """Ids below it are keys, the others are values, but for a blank."""
        return self.vocab_size // 2

    @property
    def blank(self) -> int:
        """The id that lies among scattered pairs, the last; it and those above are no values."""
        return self.vocab_size - 1 if self.spread else self.vocab_size


def split_of(values: Longs) -> NDArray[np.int64]:
    """Return the number in `SPLITS` that sets of values belong to, (..., P) -> (...)."""
    remainder: NDArray[np.int64] = values.sum(axis=-1) % len(SPLITS)
    return remainder


def draw_examples(n: int, split: Split, sizes: RecallSizes, rng: np.random.Generator) -> Recall:
    """Draw n examples of a split.

    Args:
        n: How many.
        split: Whose.
        sizes: Sizes of an example.
        rng: Source of all draws.
    """
    keys = permuted(n, 0, sizes.n_keys, rng)
    values = draw_values(n, split, sizes, rng)
    n_pairs = sizes.n_pairs
    asked, answers = keys[:, :n_pairs], values[:, :n_pairs]
    ids = np.empty((n, sizes.seq_len), dtype=np.int64)
    free = np.concatenate([keys[:, n_pairs:], values[:, n_pairs:]], axis=1)
    paired, rest = ids[:, : sizes.n_paired], ids[:, sizes.n_paired :]
    paired[...] = sizes.blank
    rest[...] = np.take_along_axis(free, rng.integers(free.shape[1], size=rest.shape), axis=1)
    places = draw_gaps(n, rest.shape[1], sizes, rng)
    np.put_along_axis(rest, places, asked, axis=1)
    starts = draw_starts(n, sizes, rng)
    np.put_along_axis(paired, starts, asked, axis=1)
    np.put_along_axis(paired, starts + 1, answers, axis=1)
    order = np.argsort(places, axis=1)
    columns = np.take_along_axis(places, order, axis=1) + sizes.n_paired
    return Recall(ids, columns, np.take_along_axis(answers, order, axis=1))


def draw_starts(n: int, sizes: RecallSizes, rng: np.random.Generator) -> Longs:
    """Draw where each pair begins, ascending, (n, n_pairs).

    Every arrangement of the pairs and of the `spread` blanks is equally probable.
    """
    in_order = np.arange(sizes.n_pairs)
    if not sizes.spread:
        return np.broadcast_to(2 * in_order, (n, sizes.n_pairs))
    units = permuted(n, 0, sizes.n_pairs + sizes.spread, rng)
    drawn = np.sort(units[:, : sizes.n_pairs], axis=1)
    # A unit is a pair or a blank: each pair before this one takes a second place.
    starts: Longs = drawn + in_order
    return starts


def draw_values(n: int, split: Split, sizes: RecallSizes, rng: np.random.Generator) -> Longs:
    """Draw all values in random order, the first `n_pairs` of which are a set of this split.

    Rows of other splits are drawn again, which leaves those of this one equally probable.
    """
    wanted = SPLITS.index(split)
    values = permuted(n, sizes.n_keys, sizes.blank, rng)
    while len(wrong := np.flatnonzero(split_of(values[:, : sizes.n_pairs]) != wanted)):
        values[wrong] = permuted(len(wrong), sizes.n_keys, sizes.blank, rng)
    return values


def draw_gaps(n: int, room: int, sizes: RecallSizes, rng: np.random.Generator) -> Longs:
    """Draw where each pair's query stands in the `room` places behind the pairs, (n, n_pairs).

    Without replacement, place i from 0 with probability proportional to (i + 1)^(gap_power - 1):
    the first arrivals of independent exponential times with these rates (Efraimidis and Spirakis
    2006, in another scale).
    """
    rates = np.arange(1.0, room + 1.0) ** (sizes.gap_power - 1.0)
    return np.argsort(rng.exponential(size=(n, room)) / rates, axis=1)[:, : sizes.n_pairs]


def permuted(n: int, start: int, stop: int, rng: np.random.Generator) -> Longs:
    """Return n random orders of the ids from start to stop - 1, (n, stop - start)."""
    ids = np.broadcast_to(np.arange(start, stop, dtype=np.int64), (n, stop - start))
    return rng.permuted(ids, axis=1)
