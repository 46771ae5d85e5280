"""Pairs of contexts, a base and a variant, each stratum isolating what a layer can tell apart.

``one_edit``, ``four_edits`` and ``half_edits`` replace the tokens of 1, 4 and n/2 positions,
``transposition`` swaps two different tokens, ``mean_preserving`` adds v to the first mixer's input
at one position and takes it away at another, so that the mean over tokens stays. All draws are pure
functions of the seed; those of one stratum do not depend on which others are asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from search.probe.errors import ProbeError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """Variants of every base in one stratum: (bases, variants, N) throughout.

    Args:
        name: the stratum.
        tokens: token ids of the variants.
        edited: positions at which variant and base differ; none where no variant could be drawn.
        push: +1, -1 or 0 times ``direction`` is added to the first mixer's input; None for
            variants that differ in tokens.
        direction: (bases, variants, D), unit root mean square.
    """

    name: str
    tokens: Tensor
    edited: Tensor
    push: Tensor | None = None
    direction: Tensor | None = None

    def select(self, index: slice) -> Pairs:
        """The pairs of some bases."""
        push = None if self.push is None else self.push[index]
        direction = None if self.direction is None else self.direction[index]
        return Pairs(self.name, self.tokens[index], self.edited[index], push, direction)

    def distance(self) -> Tensor:
        """Distance of each position to the nearest edit, (bases, variants, N); N if none."""
        n = self.edited.shape[-1]
        index = torch.arange(n).expand(self.edited.shape)
        before = torch.where(self.edited, index, -n).cummax(-1).values
        after = torch.where(self.edited, index, 2 * n).flip(-1).cummin(-1).values.flip(-1)
        return torch.minimum(index - before, after - index).clamp(max=n)

    def same_class(self, bases: Tensor, positional: bool) -> Tensor:
        """Which of (base, variant 1, ...) are the same class, (bases, 1 + variants, 1 + variants).

        Positional: equal token sequences; equivariant: equal multisets of tokens.
        """
        n_bases, n_variants = self.tokens.shape[:2]
        if self.push is not None:
            return torch.eye(1 + n_variants, dtype=torch.bool).expand(n_bases, -1, -1)
        rows = torch.cat([bases[:, None], self.tokens], dim=1)
        if not positional:
            rows = rows.sort(-1).values
        return (rows[:, :, None] == rows[:, None]).all(-1)


def draw(
    stratum: str,
    bases: Tensor,
    mask: Tensor,
    vocabulary: Tensor,
    *,
    n_variants: int,
    seed: int,
    d_model: int,
) -> Pairs:
    """Draws the variants of one stratum.

    Args:
        stratum: a name of ``STRATA``.
        bases: token ids, (bases, N).
        mask: (bases, N), True = real token; padding is never edited.
        vocabulary: ids that edits may draw, uniformly, never the id already there.
        n_variants: variants of each base.
        seed: the study's.
        d_model: width of the vectors of ``mean_preserving``.

    Raises:
        ProbeError: the vocabulary holds fewer than two ids.
    """
    ids = np.unique(vocabulary.cpu().numpy())
    if len(ids) < 2:
        raise ProbeError(f"probe: edits need at least 2 token ids to draw from, got {len(ids)}")
    rng = np.random.default_rng([seed, zlib.crc32(stratum.encode())])
    base_ids, real = bases.cpu().numpy(), mask.cpu().numpy()
    shape = (base_ids.shape[0], n_variants, base_ids.shape[1])
    tokens = np.repeat(base_ids[:, None], n_variants, axis=1)
    edited = np.zeros(shape, dtype=bool)
    push = np.zeros(shape)
    for b, v in np.ndindex(shape[:2]):
        places = np.flatnonzero(real[b])
        if stratum == "mean_preserving":
            if len(places) >= 2:
                chosen = rng.choice(places, size=2, replace=False)
                edited[b, v, chosen] = True
                push[b, v, chosen] = (1.0, -1.0)
        elif stratum == "transposition":
            swap = _differing_positions(base_ids[b], places, rng)
            if swap is not None:
                tokens[b, v, swap] = base_ids[b, swap[::-1]]
                edited[b, v, swap] = True
        else:
            k = min(_N_EDITS[stratum](len(places)), len(places))
            chosen = rng.choice(places, size=k, replace=False)
            tokens[b, v, chosen] = _other_tokens(base_ids[b, chosen], ids, rng)
            edited[b, v, chosen] = True
    pairs = Pairs(stratum, torch.from_numpy(tokens), torch.from_numpy(edited))
    if stratum != "mean_preserving":
        return pairs
    direction = rng.standard_normal((*shape[:2], d_model))
    direction /= np.sqrt(np.mean(direction**2, axis=-1, keepdims=True))
    return Pairs(
        stratum, pairs.tokens, pairs.edited, torch.from_numpy(push), torch.from_numpy(direction)
    )


_N_EDITS: dict[str, Callable[[int], int]] = {
    "one_edit": lambda _: 1,
    "four_edits": lambda _: 4,
    "half_edits": lambda n: max(1, n // 2),
}
STRATA = (*_N_EDITS, "transposition", "mean_preserving")


def _other_tokens(current: Ints, ids: Ints, rng: np.random.Generator) -> Ints:
    """Uniform draws from the sorted ids, each different from the token already there."""
    at = np.searchsorted(ids, current)
    present = ids[np.minimum(at, len(ids) - 1)] == current
    drawn = rng.integers(0, len(ids) - present)
    other: Ints = ids[drawn + (present & (drawn >= at))]
    return other


def _differing_positions(tokens: Ints, places: Ints, rng: np.random.Generator) -> Ints | None:
    """Two positions, uniform among the pairs whose tokens differ; None if there is no such pair."""
    differs = np.triu(tokens[places, None] != tokens[None, places])
    pairs = np.argwhere(differs)
    if len(pairs) == 0:
        return None
    chosen: Ints = places[pairs[rng.integers(len(pairs))]]
    return chosen
