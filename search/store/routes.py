"""How far a trial's stack carries information, found before its training and kept with it.

What `search mixers route` says of a stack, for the stack as it is: one pass through its layers,
not repeated. The n x n table of pairs is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from search.wording import plural

if TYPE_CHECKING:
    from mixers.base import TokenMixer
    from mixers.spec import EncoderSpec

Seen = tuple[int, ...]
"""The tokens that each output has seen, as bits: the lowest stands for the first token.

Integers, where `mixers.receptive` has matrices: that takes a fraction of a millisecond of a claim,
and no threads for products of matrices in a process that looks after trainings.
"""


def route_document(spec: EncoderSpec) -> dict[str, Any]:
    """Follows tokens through a stack by what its mixers declare to see, as JSON values.

    ``n_tokens`` tokens were looked at (all, but at most 512), ``seen_after`` counts the pairs
    (output, token) that have met after 0, 1, ... layers, of ``n_pairs``; ``n_unseen`` never meet
    in this stack, ``nearest_unseen`` is the distance of the nearest of them. ``full_after`` is the
    number of layers after which all have met, None if not in this stack. ``self_loop`` and
    ``chain`` (None = unknown) are the other two conditions of arXiv 2006.04862.

    A mixer that fails to say what it sees stops no training: then there is ``problem`` alone.
    """
    from mixers.receptive import LONGEST
    from mixers.registry import mixer_registry

    n_tokens = min(spec.max_seq_len, LONGEST)
    try:
        layers = [
            layer_seen(
                mixer_registry.load(block.mixer.kind),
                block.mixer.model_dump_json(),
                n_tokens,
                spec.causal,
            )
            for block in spec.blocks
        ]
    except Exception as error:  # whatever a plugin's connections raise
        return {"problem": f"{type(error).__name__}: {error}"}
    wanted = [(2 << j) - 1 if spec.causal else (1 << n_tokens) - 1 for j in range(n_tokens)]
    stages = [tuple(1 << j for j in range(n_tokens))]
    for layer in layers:
        is_done = list(stages[-1]) == wanted
        stages.append(stages[-1] if is_done else passed_on(layer, stages[-1]))
    unseen = [wish & ~row for wish, row in zip(wanted, stages[-1], strict=True)]
    full = (depth for depth, seen in enumerate(stages) if sees_all(seen, wanted))
    return {
        "n_tokens": n_tokens,
        "n_layers": spec.n_layers,
        "causal": spec.causal,
        "self_loop": all(row >> j & 1 for layer in layers for j, row in enumerate(layer)),
        "chain": has_chain(tuple(map(union, zip(*layers, strict=True)))),
        "full_after": next(full, None),
        "n_pairs": sum(row.bit_count() for row in wanted),
        "seen_after": [sum(row.bit_count() for row in seen) for seen in stages],
        "n_unseen": sum(row.bit_count() for row in unseen),
        "nearest_unseen": min(
            (nearest(j, row) for j, row in enumerate(unseen) if row), default=None
        ),
    }


@lru_cache(maxsize=256)
def layer_seen(mixer_type: type[TokenMixer[Any]], config: str, n_tokens: int, causal: bool) -> Seen:
    """Returns what a mixer declares to see; asked once for each config, given as JSON."""
    read = mixer_type.config_type.model_validate_json(config)
    table = mixer_type.declared_connections(read, seq_len=n_tokens, causal=causal).tolist()
    return tuple(sum(1 << i for i, sees in enumerate(row) if sees) for row in table)


def passed_on(layer: Seen, seen: Seen) -> Seen:
    """Returns what outputs have seen after one more layer, whose inputs had seen `seen`."""
    result = []
    before = reached = 0
    for own, row in zip(seen, layer, strict=True):
        if before & ~row:  # unlike a row that begins with the one before, as most do
            before = reached = 0
        left = row & ~before
        while left:
            lowest = left & -left
            reached |= seen[lowest.bit_length() - 1]
            left ^= lowest
        before = row
        result.append(reached | own)
    return tuple(result)


def sees_all(seen: Seen, wanted: Sequence[int]) -> bool:
    """Whether every output has seen all that it may."""
    return not any(wish & ~row for wish, row in zip(wanted, seen, strict=True))


def union(rows: Sequence[int]) -> int:
    """Returns what any of some layers sees."""
    seen = 0
    for row in rows:
        seen |= row
    return seen


def nearest(output: int, tokens: int) -> int:
    """Returns the distance from an output to the nearest of some tokens."""
    before, after = tokens & (1 << output) - 1, tokens >> output
    distances = [output + 1 - before.bit_length()] if before else []
    if after:
        distances.append((after & -after).bit_length() - 1)
    return min(distances)


@lru_cache(maxsize=256)
def has_chain(seen: Seen) -> bool | None:
    """Whether some order of all tokens has each of them seen by the next; None where unknown."""
    places = range(1, len(seen))
    forwards = all(seen[j] >> (j - 1) & 1 for j in places)
    if forwards or all(seen[j - 1] >> j & 1 for j in places):
        return True
    import torch

    from mixers.chains import find_chain

    table = torch.tensor([[bool(row >> i & 1) for i in range(len(seen))] for row in seen])
    return {"found": True, "impossible": False, "not found": None}[find_chain(table).state]


def unseen_words(route: Mapping[str, Any] | None) -> str:
    """Says how many pairs of tokens never see each other; empty where all do, or none is known."""
    if not route or not route.get("n_unseen"):
        return ""
    share = route["n_unseen"] / route["n_pairs"]
    part = f"{share:.0%}" if share >= 0.01 else f"{share:.2%}"
    return (
        f"{part} of the pairs of tokens never see each other, the nearest of them "
        f"{route['nearest_unseen']} apart"
    )


def route_words(route: Mapping[str, Any] | None) -> str:
    """Says in one line how far a stack carries information; empty where that was not asked."""
    if not route:
        return ""
    if problem := route.get("problem"):
        return f"unknown, a mixer could not say what it sees: {problem}"
    layers = route["full_after"]
    if layers is None:
        return unseen_words(route)
    return f"{sees_words(causal=route['causal'])} after {plural(layers, 'layer')}"


def sees_words(*, causal: bool) -> str:
    """Says that all is seen that may be."""
    return "every token sees all before it" if causal else "every token sees every other"
