"""Attention to a sliding window, in blocks: linear in the length, on the fused primitive."""

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

BLOCK = 64
"""Queries taken together, with the window of keys that any of them sees."""


def window_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, before: int, after: int
) -> Tensor:
    """Attention of each token to those from `before` before it to `after` after it.

    Args:
        query: (B, H, N, E), as are `key` and `value`.
        key: See `query`.
        value: See `query`.
        mask: (B, N) bool, True = real token.
        before: Tokens seen before the own one.
        after: Tokens seen after it.

    Returns:
        (B, H, N, E).
    """
    batch, n_heads, seq_len, d_head = query.shape
    n_blocks = -(-seq_len // BLOCK)
    missing = n_blocks * BLOCK - seq_len
    span = BLOCK + before + after
    sides = (0, 0, before, after + missing)
    keys, values = (
        pad(part, sides).unfold(2, span, BLOCK).permute(0, 2, 1, 4, 3).flatten(0, 1)
        for part in (key, value)
    )
    queries = pad(query, (0, 0, 0, missing)).view(batch, n_heads, n_blocks, BLOCK, d_head)
    real = query.new_ones((1, seq_len), dtype=torch.bool) if mask is None else mask
    real = pad(real, sides[2:]).unfold(1, span, BLOCK)[:, :, None]
    places = torch.arange(BLOCK, device=query.device)[:, None]
    ahead = torch.arange(span, device=query.device) - before - places
    allowed = (real & (ahead >= -before) & (ahead <= after)) | (ahead == 0)
    allowed = allowed.expand(batch, -1, -1, -1).reshape(batch * n_blocks, 1, BLOCK, span)
    mixed = scaled_dot_product_attention(
        queries.transpose(1, 2).flatten(0, 1), keys, values, attn_mask=allowed
    )
    whole = mixed.view(batch, n_blocks, n_heads, BLOCK, d_head).transpose(1, 2)
    return whole.reshape(batch, n_heads, n_blocks * BLOCK, d_head)[:, :, :seq_len]
