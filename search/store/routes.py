"""How far a trial's stack carries information, found before its training and kept with it.

What `search mixers route` says of a stack, for the stack as it is: one pass through its layers,
not repeated. The n x n table of pairs is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec


def route_document(spec: EncoderSpec) -> dict[str, Any]:
    """Follows tokens through a stack by what its mixers declare to see, as JSON values.

    ``n_tokens`` tokens were looked at (all, but at most 512), ``seen_after`` counts the pairs
    (output, token) that have met after 0, 1, ... layers, of ``n_pairs``; ``n_unseen`` never meet
    in this stack, ``nearest_unseen`` is the distance of the nearest of them. ``full_after`` is the
    number of layers after which all have met, None if not in this stack. ``self_loop`` and
    ``chain`` (None = unknown) are the other two conditions of arXiv 2006.04862.

    A mixer that fails to say what it sees stops no training: then there is ``problem`` alone.
    """
    from mixers.receptive import route

    try:
        found = route(spec, repeated=False)
    except Exception as error:  # whatever a plugin's connections raise
        return {"problem": f"{type(error).__name__}: {error}"}
    unseen = found.unseen()
    return {
        "n_tokens": found.n_tokens,
        "n_layers": found.n_layers,
        "causal": found.causal,
        "self_loop": found.conditions["self_loop"],
        "chain": found.conditions["chain"],
        "full_after": found.full_after,
        "n_pairs": found.n_pairs,
        "seen_after": [found.seen_after(layers) for layers in range(found.n_layers + 1)],
        "n_unseen": len(unseen),
        "nearest_unseen": min((abs(output - token) for output, token in unseen), default=None),
    }


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
    sees = "every token sees all before it" if route["causal"] else "every token sees every other"
    return f"{sees} after {layers} layer{'' if layers == 1 else 's'}"
