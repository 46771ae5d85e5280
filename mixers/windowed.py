"""Windows of blocks of tokens, and attention to a sliding window: linear in the length."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad, scaled_dot_product_attention

BLOCK = 64
"""Tokens taken together, with the window of tokens that any of them sees."""


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
    keys, values = (windows(part, before=before, after=after, rows=BLOCK) for part in (key, value))
    queries = pad(query, (0, 0, 0, missing)).view(batch, n_heads, n_blocks, BLOCK, d_head)
    real = query.new_ones((1, seq_len), dtype=torch.bool) if mask is None else mask
    real = pad(real, (before, after + missing)).unfold(1, span, BLOCK)[:, :, None]
    places = torch.arange(BLOCK, device=query.device)[:, None]
    ahead = torch.arange(span, device=query.device) - before - places
    allowed = (real & (ahead >= -before) & (ahead <= after)) | (ahead == 0)
    allowed = allowed.expand(batch, -1, -1, -1).reshape(batch * n_blocks, 1, BLOCK, span)
    mixed = scaled_dot_product_attention(
        queries.transpose(1, 2).flatten(0, 1), keys, values, attn_mask=allowed
    )
    whole = mixed.view(batch, n_blocks, n_heads, BLOCK, d_head).transpose(1, 2)
    return whole.reshape(batch, n_heads, n_blocks * BLOCK, d_head)[:, :, :seq_len]


def windows(x: Tensor, *, before: int, after: int, rows: int) -> Tensor:
    """Return what each block of tokens sees, zeros around the input: (B * blocks, H, S, E).

    S = before + rows + after.

    Args:
        x: (B, H, N, E).
        before: Tokens before a block.
        after: Tokens after it.
        rows: Tokens of a block.
    """
    taken: Callable[..., Tensor] = Windows.apply
    return taken(x, before, after, rows)


class Windows(torch.autograd.Function):
    """The copy behind `windows`.

    Its gradient by hand adds whole blocks, which takes half the time of PyTorch's for `unfold`.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, before: int, after: int, rows: int) -> Tensor:
        """Return the windows."""
        ctx.shape, ctx.before, ctx.rows = x.shape, before, rows
        missing = -x.shape[2] % rows
        padded = pad(x, (0, 0, before, after + missing))
        taken = padded.unfold(2, before + rows + after, rows)
        return taken.permute(0, 2, 1, 4, 3).flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the sum over the windows that hold a token."""
        (batch, n_heads, seq_len, width), rows = ctx.shape, ctx.rows
        span, n_blocks = gradient.shape[2], -(-seq_len // rows)
        by_block = gradient.reshape(batch, n_blocks, n_heads, span, width).transpose(1, 2)
        total = gradient.new_zeros(batch, n_heads, n_blocks + -(-span // rows) - 1, rows, width)
        for later, start in enumerate(range(0, span, rows)):
            part = by_block[:, :, :, start : start + rows]
            total[:, :, later : later + n_blocks, : part.shape[3]] += part
        padded = total.flatten(2, 3)
        return padded[:, :, ctx.before : ctx.before + seq_len], None, None, None
