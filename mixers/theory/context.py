"""Lemma 6 and appendix C.2: selective shifts that give every token of every context its own id."""

from fractions import Fraction

from mixers.theory.layers import Number, ShiftLayer, SignLayer, Tokens, dot, whole
from mixers.theory.sizes import Sizes


def shift_layers(sizes: Sizes) -> list[ShiftLayer]:
    """Return the literal form: one selective shift for every id, ascending."""
    return [ShiftLayer(sizes.u, level, sizes.B) for level in sizes.levels]


def global_layer(sizes: Sizes) -> SignLayer:
    """Return the last layer of the contextual mapping."""
    return SignLayer(sizes.u, sizes.last_scale)


def contextual(sizes: Sizes, tokens: Tokens) -> Tokens:
    """Return g_c in its sparse form: only the layers that act.

    A shift moves the first entry alone, and u_1 = 1, so ids are all that has to be followed.
    """
    before = [dot(sizes.u, token) for token in tokens]
    after = contextual_ids(sizes, before)[0]
    return [
        [token[0] + new - old, *token[1:]]
        for token, old, new in zip(tokens, before, after, strict=True)
    ]


def contextual_ids(sizes: Sizes, ids: list[Number]) -> tuple[list[Number], list[Number], int]:
    """Follow the ids through the layers that act: take the smallest id that is still to be swept.

    Args:
        sizes: The sizes.
        ids: The n ids after the quantizer.

    Returns:
        The ids after the global layer, those before it, and how many shifts met an id.
    """
    ids = list(ids)
    reached, n_shifts = -1, 0
    while True:
        waiting = [s for s in ids if s > reached and is_level(sizes, s)]
        if not waiting:
            break
        reached = int(min(waiting))
        amount = sizes.B * (max(ids) - min(ids))
        ids = [s + amount if s == reached else s for s in ids]
        n_shifts += 1
    high, low = max(ids), min(ids)
    mean = whole(Fraction(sum(ids)) / len(ids)) if 0 in ids else 0
    last = sizes.last_scale
    return (
        [s + last * (high if s > 0 else low if s < 0 else mean) for s in ids],
        ids,
        n_shifts,
    )


def is_level(sizes: Sizes, score: Number) -> bool:
    """Whether the sweep has a layer for this id."""
    position, step = divmod(score, sizes.position_step)
    return 0 <= position < (sizes.n if sizes.theorem == 3 else 1) and step < sizes.B
