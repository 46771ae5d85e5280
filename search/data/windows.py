"""Windows of a fixed length over a token stream; none crosses the end of a document."""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search.data.seeding import generator
from search.data.streams import Ids, Longs, TokenStream

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Windows:
    """Places of windows in a stream: starts and lengths in tokens, and documents; each (W,)."""

    starts: Longs
    lengths: Longs
    documents: Longs

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, index: Longs) -> "Windows":
        """Return the windows of these numbers."""
        return Windows(self.starts[index], self.lengths[index], self.documents[index])


def tile(stream: TokenStream, seq_len: int) -> Windows:
    """Return non-overlapping windows that cover every token; a piece's last one may be short."""
    counts = -(-stream.lengths // seq_len)
    piece = np.repeat(np.arange(len(counts)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    starts = stream.offsets[piece] + (np.arange(len(piece)) - first) * seq_len
    lengths = np.minimum(seq_len, stream.offsets[piece + 1] - starts)
    return Windows(starts, lengths, stream.documents[piece])


def even_sample(windows: Windows, n: int, rng: np.random.Generator) -> Windows:
    """Return n windows at equal distances from a random start; all if there are no more than n.

    Each document gives windows in proportion to its length, and every window is equally likely.
    """
    if len(windows) <= n:
        return windows
    places = (np.arange(n) + rng.random()) * (len(windows) / n)
    return windows.take(np.minimum(places.astype(np.int64), len(windows) - 1))


def read_windows(
    tokens: Ids, windows: Windows, seq_len: int, pad_id: int
) -> tuple[Longs, Bools | None]:
    """Return ids (W, N) int64 and the mask (W, N), None where nothing is padded."""
    places = windows.starts[:, None] + np.arange(seq_len)
    if bool(np.all(windows.lengths == seq_len)):
        return tokens[places].astype(np.int64), None
    mask = np.arange(seq_len) < windows.lengths[:, None]
    ids = tokens[np.where(mask, places, 0)].astype(np.int64)
    return np.where(mask, ids, pad_id), mask


class TrainingWindows:
    """Which windows a training batch reads: a pure function of seed, step and batch size.

    An epoch lays one window per `seq_len` tokens evenly over each piece (a shorter piece is one
    padded window), from a random phase, and shuffles them; so within an epoch no window stands
    twice and nearly every token is read once, and each epoch cuts the text elsewhere.

    Args:
        stream: The training split.
        seq_len: Tokens in a window.
    """

    def __init__(self, stream: TokenStream, seq_len: int) -> None:
        self.stream = stream
        self.seq_len = seq_len
        lengths = stream.lengths
        # A piece owns one slot per token, at least seq_len; lattice points seq_len slots apart
        # are the windows, so a short piece has exactly one in every epoch.
        self.slots = np.maximum(lengths, seq_len)
        self.ends = np.cumsum(self.slots)
        self.n_starts = np.maximum(lengths - seq_len + 1, 1)
        self.per_epoch = int(self.ends[-1]) // seq_len
        # An epoch's order costs more than a batch; steps walk through one epoch after another.
        self.order = functools.lru_cache(maxsize=2)(self.draw_order)

    @property
    def padded(self) -> bool:
        """Whether some piece is shorter than a window."""
        return bool(np.any(self.stream.lengths < self.seq_len))

    def batch(self, step: int, *, seed: int, batch_size: int) -> Windows:
        """Return the windows of one step; steps of one size walk through the epochs in order."""
        position = np.arange(step * batch_size, (step + 1) * batch_size)
        epochs, places = np.divmod(position, self.per_epoch)
        slots = np.empty(batch_size, dtype=np.int64)
        for epoch in np.unique(epochs):
            phase, order = self.order(seed, int(epoch))
            chosen = epochs == epoch
            slots[chosen] = phase + order[places[chosen]] * self.seq_len
        return self.at(slots % int(self.ends[-1]))

    def draw_order(self, seed: int, epoch: int) -> tuple[int, Longs]:
        """Return an epoch's phase and the shuffled numbers of its windows."""
        rng = generator("training windows", seed, epoch)
        return int(rng.integers(int(self.ends[-1]))), rng.permutation(self.per_epoch)

    def at(self, slots: Longs) -> Windows:
        """Return the window that each slot stands for."""
        piece = np.searchsorted(self.ends, slots, side="right")
        inside = slots - (self.ends[piece] - self.slots[piece])
        starts = self.stream.offsets[piece] + inside * self.n_starts[piece] // self.slots[piece]
        lengths = np.minimum(self.seq_len, self.stream.lengths[piece])
        return Windows(starts, lengths, self.stream.documents[piece])
