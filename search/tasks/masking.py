"""Masking of tokens as BERT does it, made ahead on the CPU."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search.data.streams import Longs

Bools = NDArray[np.bool_]

MASKED_SHARE = 0.8
RANDOM_SHARE = 0.1


@dataclass(frozen=True)
class Masked:
    """A masked batch.

    Attributes:
        inputs: What the model reads, (B, N).
        places: Flat places `row * N + column` of the targets, ascending, (T,).
        targets: The ids that stood there, (T,).
    """

    inputs: Longs
    places: Longs
    targets: Longs


def mask_tokens(
    ids: Longs,
    maskable: Bools,
    n_tokens: Longs,
    *,
    probability: float,
    mask_id: int,
    random_ids: Longs,
    rng: np.random.Generator,
) -> Masked:
    """Choose targets and hide them: 80 % by the mask token, 10 % by a random token, 10 % shown.

    Devlin et al. 2019, section 3.1 and appendix A. Each row has round(probability * its real
    tokens) targets, as in BERT's own data, but at least one and at most the maskable ones; a row
    without a maskable token has none.

    Args:
        ids: Token ids, (B, N); not changed.
        maskable: Where a target may stand: real tokens that are not special, (B, N).
        n_tokens: Real tokens of each row, (B,).
        probability: Share of tokens to predict.
        mask_id: Id of the mask token.
        random_ids: Ids to draw random tokens from.
        rng: Source of all draws.
    """
    seq_len = ids.shape[1]
    wanted = np.maximum(1, np.rint(probability * n_tokens).astype(np.int64))
    counts = np.minimum(wanted, maskable.sum(axis=1))
    # The smallest of independent uniform keys are a sample without replacement.
    keys = np.where(maskable, rng.random(ids.shape, dtype=np.float32), np.float32(2.0))
    most = int(counts.max(initial=0))
    columns = np.argsort(keys, axis=1)[:, :most]
    chosen = np.arange(most) < counts[:, None]
    places = np.sort((columns + np.arange(len(ids))[:, None] * seq_len)[chosen])
    inputs = ids.copy()
    flat = inputs.reshape(-1)
    targets = flat[places]
    action = rng.random(len(places))
    drawn = random_ids[rng.integers(len(random_ids), size=len(places))]
    hidden = np.where(action < MASKED_SHARE, mask_id, drawn)
    flat[places] = np.where(action < MASKED_SHARE + RANDOM_SHARE, hidden, targets)
    return Masked(inputs, places, targets)
