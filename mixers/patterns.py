"""Which tokens may see which: the sparse patterns of Yun et al. 2020 (arXiv 2006.04862).

A pattern has one part or two, its A^1 and A^2. Places are counted from the first real token, so
padding in front moves nothing. Every token is in its own set.
"""

from typing import Literal

import torch
from torch import Tensor

Pattern = Literal["sliding_window", "strided", "fixed", "star", "random"]
Part = Literal["first", "second"]

TWO_PARTS: tuple[Pattern, ...] = ("strided", "fixed")
"""Patterns with a first and a second part."""
LAST = torch.iinfo(torch.int64).max


def visible(
    pattern: Pattern, part: Part, mask: Tensor, *, width: int, seed: int, causal: bool
) -> Tensor:
    """Return which keys each query may see, (B, N, N) bool: entry (b, j, i) is query j, key i.

    Padded keys are never seen, but every query sees itself.

    Args:
        pattern: Its name.
        part: Which of its parts; "first" where it has one only.
        mask: (B, N) bool, True = real token.
        width: Its size, see `pattern_of`; for "random" the number of keys that are drawn.
        seed: Of the draw; read by "random" only.
        causal: Keep keys up to the query's own place only.
    """
    seq_len = mask.shape[1]
    first = mask.to(torch.uint8).argmax(dim=1, keepdim=True)
    places = torch.arange(seq_len, device=mask.device) - first
    query, key = places[:, :, None], places[:, None, :]
    itself = query == key
    candidates = (mask[:, None, :] & (key <= query)) if causal else mask[:, None, :]
    if pattern == "random":
        chosen = drawn(query, key, candidates & ~itself, width=width, seed=seed)
    else:
        chosen = pattern_of(pattern, part, query, key, width)
    return (chosen & candidates) | itself


def pattern_of(pattern: Pattern, part: Part, query: Tensor, key: Tensor, width: int) -> Tensor:
    """Return whether a query at one place sees a key at another; places count from 0.

    `width` is the number of neighbours on each side ("sliding_window", "strided", "star"), the
    stride ("strided") or the size of a block ("fixed").
    """
    near = (query - key).abs() <= width
    match pattern, part:
        case "strided", "second":
            return (query - key) % width == 0
        case "fixed", "first":
            return query // width == key // width
        case "fixed", "second":
            return key % width == width - 1
        case "star", _:
            return near | (key == 0) | (query == 0)
        case _:
            return near


def drawn(query: Tensor, key: Tensor, candidates: Tensor, *, width: int, seed: int) -> Tensor:
    """Return `width` candidates of each query, drawn without replacement.

    Each pair of places has a hash; the candidates with the smallest ones are taken. So the draw
    depends on the seed, the places and the real tokens, not on padding, batch or device.
    """
    rank = mixed(query * 0x1000003 + key + mixed(query.new_tensor(seed + 1)))
    rank = rank.expand_as(candidates).masked_fill(~candidates, LAST)
    most = rank.topk(min(width, rank.shape[-1]), dim=-1, largest=False).values[..., -1:]
    return candidates & (rank <= most)


def mixed(x: Tensor) -> Tensor:
    """Return a hash of int64 numbers in 0 .. 2^62, the same on every device (after SplitMix64)."""
    for factor in (-0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15):
        # Shifts of negative numbers copy the sign; the mask takes it away again.
        x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * factor
    return (x ^ ((x >> 31) & 0x1FFFFFFFF)) & 0x3FFFFFFFFFFFFFFF


def connection_count(pattern: Pattern, part: Part, *, width: int, seq_len: int) -> int:
    """Return how many (query, key) pairs a pattern has, windows at the ends counted in full."""
    window = min(2 * width + 1, 2 * seq_len - 1)
    match pattern, part:
        case "strided", "second":
            steps = (seq_len - 1) // width
            return seq_len * (2 * steps + 1) - width * steps * (steps + 1)
        case "fixed", "first":
            blocks, rest = divmod(seq_len, width)
            return blocks * width**2 + rest**2
        case "fixed", "second":
            ends = seq_len // width
            return seq_len * ends + seq_len - ends
        case "random", _:
            return seq_len * min(width + 1, seq_len)
        case "star", _:
            return seq_len * (window + 2)
        case _:
            return seq_len * window
