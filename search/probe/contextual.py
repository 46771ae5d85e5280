"""Distinctness over all items of a run: is this network a contextual mapping on these contexts?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from search.probe.clusters import Ints, distinctness
from search.probe.network import Rows


def keys_and_classes(tokens: Tensor, mask: Tensor, *, positional: bool) -> tuple[Ints, Ints]:
    """Keys and classes of the real items of some contexts, (items,) each, in row order.

    Positional: the key is (token, position), the class (key, token sequence); equivariant: token,
    and (token, multiset of tokens). Padding takes no part in either.
    """
    real = mask.numpy()
    ids = np.where(real, tokens.numpy(), -1)
    contexts = np.unique(ids if positional else np.sort(ids), axis=0, return_inverse=True)[1]
    n_contexts, n_tokens = ids.shape
    places = ids * n_tokens + np.arange(n_tokens) if positional else ids
    keys = np.unique(places[real], return_inverse=True)[1]
    context = np.broadcast_to(contexts.reshape(-1, 1), ids.shape)[real]
    return keys, np.unique(keys * n_contexts + context, return_inverse=True)[1]


def contextual_readings(
    items: Sequence[tuple[Rows, Tensor, Tensor]], *, positional: bool
) -> dict[str, float | None]:
    """Distinctness over (rows, outputs (rows, N, D), thresholds (rows, N)) of one probe point.

    ``d_all`` alone misleads, since the skip connection separates different tokens: read ``d_ctx``.
    """
    mask = torch.cat([rows.mask for rows, _, _ in items])
    tokens = torch.cat([rows.tokens for rows, _, _ in items])
    outputs = torch.cat([h[rows.mask] for rows, h, _ in items])
    tau = torch.cat([t[rows.mask] for rows, _, t in items])
    keys, classes = keys_and_classes(tokens, mask, positional=positional)
    found = distinctness(outputs.numpy(), keys, classes, tau.numpy())
    return {
        "contextual.d_ctx": found.d_ctx,
        "contextual.s_ctx": found.s_ctx,
        "contextual.d_all": found.d_all,
        "contextual.cross_key_merged": float(found.cross_key_merged),
        "contextual.split_classes": float(found.split_classes),
    }
