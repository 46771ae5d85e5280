"""A chain through all tokens: a Hamiltonian path in the graph of who sees whom."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

MOST_STEPS = 20_000
"""Steps of the search for a chain that no simple order gives."""


@dataclass(frozen=True)
class Chain:
    """Result of `find_chain`.

    Attributes:
        state: "found", "impossible" (proven) or "not found" (the search gave up).
        order: The tokens in the order found; () otherwise.
        apart: Two tokens of which neither can reach the other: the proof of "impossible".
    """

    state: Literal["found", "impossible", "not found"]
    order: tuple[int, ...] = ()
    apart: tuple[int, int] | None = None


def find_chain(seen: Tensor) -> Chain:
    """Find an order of all tokens in which each is seen by the next.

    Tries the order of the text, forwards and backwards; then, unless two tokens are out of each
    other's reach for good, a depth-first search that prefers tokens with few ways on. Finding such
    a path is hard in general, so the search ends after a number of steps.

    Args:
        seen: (N, N) bool, entry (j, i): output j sees token i.
    """
    tokens = len(seen)
    forwards = tuple(range(tokens))
    for order in (forwards, forwards[::-1]):
        if is_chain(seen, order):
            return Chain("found", order)
    reach = closure(seen)
    apart = (~(reach | reach.T)).nonzero()
    if len(apart):
        first, second = sorted(apart[0].tolist())
        return Chain("impossible", apart=(first, second))
    order = searched(seen, reach)
    return Chain("found", order) if order else Chain("not found")


def is_chain(seen: Tensor, order: tuple[int, ...]) -> bool:
    """Whether each token of the order is seen by the next."""
    return bool(seen[list(order[1:]), list(order[:-1])].all())


def closure(seen: Tensor) -> Tensor:
    """Return who reaches whom in any number of steps, (N, N) bool."""
    reach = seen.float().fill_diagonal_(1.0)
    while True:
        further = (reach @ reach > 0).float()
        if torch.equal(further, reach):
            return reach > 0
        reach = further


def searched(seen: Tensor, reach: Tensor) -> tuple[int, ...]:
    """Return a chain found by depth-first search, or ()."""
    tokens = len(seen)
    following = [set((column.nonzero()[:, 0]).tolist()) - {i} for i, column in enumerate(seen.T)]
    # A chain starts at a token that reaches all others.
    starts = reach.all(0).nonzero()[:, 0].tolist()
    steps = 0
    for start in sorted(starts, key=lambda token: len(following[token])):
        path, used = [start], {start}
        ways = [sorted_ways(following, used, start)]
        while ways and steps < MOST_STEPS:
            steps += 1
            if len(path) == tokens:
                return tuple(path)
            if not ways[-1]:
                ways.pop()
                used.discard(path.pop())
                continue
            token = ways[-1].pop()
            path.append(token)
            used.add(token)
            ways.append(sorted_ways(following, used, token))
    return ()


def sorted_ways(following: list[set[int]], used: set[int], token: int) -> list[int]:
    """Return the unused tokens that see `token`, the one with the fewest ways on last."""
    free = following[token] - used
    return sorted(free, key=lambda way: -len(following[way] - used))
