"""Convolution along the sequence as products with band matrices.

A filter shared by many channels is a band matrix over tokens, so correlating with it is a matrix
product per filter: the same numbers as the plain depthwise convolution, several times sooner.
Long inputs are cut into blocks of tokens, so the work stays linear in N. Letters: B batch,
N tokens, D features, F filters, K taps, R tokens of a block.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from mixers.windowed import BLOCK, windows


def by_band(x: Tensor, filters: Tensor, before: int) -> Tensor:
    """Correlate with one product per filter; arguments as in `mixers.convolution.convolve`."""
    batch, seq_len, d_model = x.shape
    n_filters = len(filters)
    band = banded(filters[:, None].expand(-1, seq_len, -1))[:, :, before : before + seq_len]
    by_filter = x.view(batch, seq_len, n_filters, d_model // n_filters).permute(2, 1, 0, 3)
    mixed = band.bmm(by_filter.reshape(n_filters, seq_len, -1))
    mixed = mixed.view(n_filters, seq_len, batch, d_model // n_filters)
    return mixed.permute(2, 1, 0, 3).reshape(batch, seq_len, d_model)


def by_blocks(x: Tensor, filters: Tensor, before: int, rows: int) -> Tensor:
    """Correlate block by block; arguments as in `mixers.convolution.convolve`.

    Args:
        x: See there.
        filters: See there.
        before: See there.
        rows: Tokens of a block.
    """
    if torch.is_autocast_enabled(x.device.type):
        x = x.to(torch.get_autocast_dtype(x.device.type))
    seq_len = x.shape[1]
    whole = pad(x, (0, 0, 0, -seq_len % rows))
    product: Callable[..., Tensor] = BlockedProduct.apply
    mixed = product(whole, filters.to(x.dtype), before, rows)
    return mixed[:, :seq_len]


class BlockedProduct(torch.autograd.Function):
    """Block i of the output is the sum over s of T_s times block i + s of the input.

    T_s (R, R) are the pieces of the band matrix, the same for every i; s runs over the few blocks
    that a filter reaches. Blocks are laid out so that those of one s for all i, of the whole batch,
    are the columns of one product. Gradients are written by hand: the same products with T_s
    transposed, and the sums along the diagonals of T_s. Through autograd the overlapping blocks
    would each be filled up with zeros and added, which takes half as long again.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, filters: Tensor, before: int, rows: int) -> Tensor:
        """Return the mixed tokens, (B, N, D); N is a multiple of `rows`."""
        left, right = -(-before // rows), -(-(filters.shape[1] - 1 - before) // rows)
        band = filters.new_zeros(len(filters), rows, (left + 1 + right) * rows)
        diagonals(band, filters.shape[1], left * rows - before).copy_(filters[:, None])
        blocks = laid_out(x, len(filters), rows, left, right)
        ctx.save_for_backward(blocks, band)
        ctx.before, ctx.kernel_size, ctx.left, ctx.right = before, filters.shape[1], left, right
        return tokens(products(pieces_of(band), blocks, x.shape), x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Return the gradients of the input and of the filters."""
        blocks, band = ctx.saved_tensors
        n_filters, rows, _ = band.shape
        shape = gradient.shape
        outer = laid_out(gradient, n_filters, rows, ctx.right, ctx.left)
        turned = [piece.mT for piece in reversed(pieces_of(band))]
        by_input = products(turned, outer, shape)
        at = ctx.right * columns_of(shape, n_filters)
        inner = outer[:, :, at : at + by_input.shape[2]]
        by_band = torch.empty_like(band)
        for piece, some in zip(pieces_of(by_band), shifted(blocks, shape), strict=True):
            piece.copy_(inner.bmm(some.mT))
        by_filters = diagonals(by_band, ctx.kernel_size, ctx.left * rows - ctx.before).sum(1)
        return tokens(by_input, shape), by_filters, None, None


def laid_out(x: Tensor, n_filters: int, rows: int, left: int, right: int) -> Tensor:
    """Return (F, R, blocks * B * D / F): x by filter and place in a block, empty blocks around."""
    batch, seq_len, d_model = x.shape
    n_blocks, shared = seq_len // rows, d_model // n_filters
    blocks = x.new_empty(n_filters, rows, left + n_blocks + right, batch, shared)
    blocks[:, :, :left].zero_()
    blocks[:, :, left + n_blocks :].zero_()
    by_filter = x.reshape(batch, n_blocks, rows, n_filters, shared).permute(3, 2, 1, 0, 4)
    blocks[:, :, left : left + n_blocks].copy_(by_filter)
    return blocks.flatten(2)


def tokens(blocks: Tensor, shape: torch.Size) -> Tensor:
    """Return blocks (F, R, blocks * B * D / F) without empty ones as x (B, N, D)."""
    batch, seq_len, _ = shape
    n_filters, rows, _ = blocks.shape
    by_filter = blocks.view(n_filters, rows, seq_len // rows, batch, -1)
    return by_filter.permute(3, 2, 1, 0, 4).reshape(shape)


def columns_of(shape: torch.Size, n_filters: int) -> int:
    """Return how many columns of the layout one block has."""
    batch, _, d_model = shape
    return batch * d_model // n_filters


def shifted(blocks: Tensor, shape: torch.Size) -> list[Tensor]:
    """Return, for s from the first to the last, the columns of block i + s of every i."""
    n_filters, rows, width = blocks.shape
    step = columns_of(shape, n_filters)
    taken = shape[1] // rows * step
    return [blocks[:, :, at : at + taken] for at in range(0, width - taken + 1, step)]


def pieces_of(band: Tensor) -> tuple[Tensor, ...]:
    """Return the pieces T_s of (F, R, pieces * R), as views."""
    n_filters, rows, width = band.shape
    return band.view(n_filters, rows, width // rows, rows).unbind(2)


def products(pieces: Sequence[Tensor], blocks: Tensor, shape: torch.Size) -> Tensor:
    """Return the sum over s of T_s times the columns shifted by s, (F, R, columns)."""
    first, *others = zip(pieces, shifted(blocks, shape), strict=True)
    total = first[0].bmm(first[1])
    for piece, some in others:
        total.baddbmm_(piece, some)
    return total


def diagonals(band: Tensor, kernel_size: int, start: int) -> Tensor:
    """Return the view (F, R, K) of a band matrix: row j's K entries from start + j on."""
    n_filters, rows, width = band.shape
    return band.as_strided(
        (n_filters, rows, kernel_size), (rows * width, width + 1, 1), band.storage_offset() + start
    )


def convolve_each(x: Tensor, weights: Tensor, *, before: int) -> Tensor:
    """Correlate with filters that differ from token to token; zeros stand around the input.

    Args:
        x: Input (B, N, D).
        weights: (B, N, F, K), the F filters of every output; channel c uses c // (D / F).
        before: Taps that look at tokens before an output's own.

    Returns:
        (B, N, D), entry j the sum over k of weights[j, k] x[j - before + k].
    """
    batch, seq_len, d_model = x.shape
    n_filters, kernel_size = weights.shape[2:]
    rows = min(seq_len, BLOCK)
    missing = -seq_len % rows
    by_filter = x.view(batch, seq_len, n_filters, d_model // n_filters).transpose(1, 2)
    seen = windows(by_filter, before=before, after=kernel_size - 1 - before, rows=rows)
    filters = pad(weights, (0, 0, 0, 0, 0, missing)).view(-1, rows, n_filters, kernel_size)
    mixed = banded(filters.transpose(1, 2)) @ seen
    return mixed.transpose(1, 2).reshape(batch, -1, d_model)[:, :seq_len]


def banded(filters: Tensor) -> Tensor:
    """Return (..., rows, rows + K - 1) from (..., rows, K): row j holds its filter from j on.

    Filters followed by `rows` zeros, put in a line and read one step shorter per row, shift right
    row by row: no index, so the gradient is a sum and not a scatter.
    """
    rows, kernel_size = filters.shape[-2:]
    width = rows + kernel_size - 1
    line = pad(filters, (0, rows)).flatten(-2)
    return line[..., : rows * width].view(*line.shape[:-1], rows, width)
