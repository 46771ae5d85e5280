"""Convolution along the sequence as products with band matrices.

A filter shared by many channels is a band matrix over tokens, so correlating with it is a matrix
product per filter: the same numbers as the plain depthwise convolution, several times sooner.
Long inputs are cut into blocks of tokens, so the work stays linear in N. Letters: B batch,
N tokens, D features, F filters, K taps, R tokens of a block.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import glu, pad

from mixers.windowed import windows

SHORT_SHARED, SHORT_BY_TOKEN = 128, 64
"""Taps up to which a filter is short, as `python -m benchmarks.blocks` measured it."""


def tokens_of_block(kernel_size: int, short: int) -> int:
    """Return how many tokens a block has, R.

    A product of R outputs takes R + K - 1 inputs in, of which each output needs K: short filters
    waste less in small blocks, long ones make faster products in large blocks.
    """
    return 32 if kernel_size <= short else 64


def by_blocks(x: Tensor, filters: Tensor, before: int, rows: int, *, gated: bool = False) -> Tensor:
    """Correlate block by block; arguments as in `mixers.convolution.convolve`.

    Args:
        x: See there.
        filters: See there.
        before: See there.
        rows: Tokens of a block; all of them make one product with a band matrix over the input.
        gated: See there.
    """
    device = x.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        x = x.to(torch.get_autocast_dtype(device))
    product: Callable[..., Tensor] = BlockedProduct.apply
    return product(x, filters.to(x.dtype), before, min(rows, x.shape[2]), gated)


class BlockedProduct(torch.autograd.Function):
    """A block of R outputs is a band matrix times the R + K - 1 tokens that its filters reach.

    All sequences stand in one line with zeros between them, so blocks start R apart and what all of
    them see from some distance on is one matrix, a view of the line. The band is cut into pieces of
    at most R columns: one product each. The gated linear unit writes into the line and reads from
    its gradient, so no copy stands between them. Gradients are written by hand: the same products
    with the filters turned round, and sums along diagonals.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, filters: Tensor, before: int, rows: int, gated: bool
    ) -> Tensor:
        """Return the mixed tokens, (D, B, N)."""
        d_model = x.shape[0] // 2 if gated else x.shape[0]
        cut = Cut.of(torch.Size((d_model, *x.shape[1:])), filters.shape, before, rows)
        line = cut.line(x, gated=gated)
        ctx.save_for_backward(line, x if gated else None, filters)
        ctx.cut = cut
        return cut.tokens(cut.products(line, filters))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        """Return the gradients of the input and of the filters."""
        line, both, filters = ctx.saved_tensors
        cut = ctx.cut
        turned = cut.turned()
        outer = turned.line(gradient)
        by_x = turned.tokens(turned.products(outer, filters.flip(1)))
        by_filters = cut.by_filters(line, turned.seen(outer, turned.left, cut.rows))
        if both is not None:
            by_x = torch.ops.aten.glu_backward(by_x, both, 0)
        return by_x, by_filters, None, None, None


@dataclass(frozen=True)
class Cut:
    """How a convolution is cut into blocks.

    Attributes:
        shape: (D, B, N) of the input.
        n_filters: F.
        kernel_size: K.
        before: Taps that look at tokens before an output's own.
        rows: R, tokens of a block.
        left: Tokens before a block that its outputs see, where there are any.
        right: Tokens after it.
        length: Of a sequence with the zeros behind it, a multiple of R.
    """

    shape: torch.Size
    n_filters: int
    kernel_size: int
    before: int
    rows: int
    left: int
    right: int
    length: int

    @classmethod
    def of(cls, shape: torch.Size, filters: torch.Size, before: int, rows: int) -> "Cut":
        """Cut an input of that shape."""
        n_filters, kernel_size = filters
        beside = (-(-shape[2] // rows) - 1) * rows
        left, right = min(before, beside), min(kernel_size - 1 - before, beside)
        length = -(-(shape[2] + max(left, right)) // rows) * rows
        return cls(shape, n_filters, kernel_size, before, rows, left, right, length)

    def turned(self) -> "Cut":
        """Return the cut for the gradient of the input: sides change places."""
        before = self.kernel_size - 1 - self.before
        return replace(self, before=before, left=self.right, right=self.left)

    def line(self, x: Tensor, *, gated: bool = False) -> Tensor:
        """Return all sequences of x, or its gated linear unit, in one line, zeros around each."""
        d_model, batch, seq_len = self.shape
        if not gated and self.length == seq_len:
            return x.reshape(-1)
        size = d_model * batch * self.length
        line = x.new_empty(self.left + size + self.right)
        places = line[self.left : self.left + size].view(d_model, batch, self.length)
        if gated and torch.compiler.is_compiling():
            places[:, :, :seq_len].copy_(glu(x, 0))  # a compiler makes one pass of it
        elif gated:
            torch.ops.aten.glu.out(x, 0, out=places[:, :, :seq_len])
        else:
            places[:, :, :seq_len].copy_(x)
        places[:, :, seq_len:].zero_()
        line[: self.left].zero_()
        line[self.left + size :].zero_()
        return line

    def seen(self, line: Tensor, start: int, width: int) -> Tensor:
        """Return (F, blocks, width): what stands from `start` on, counted from a block's left."""
        d_model, batch, _ = self.shape
        n_blocks = d_model * batch * self.length // self.rows
        reached = line[start : start + (n_blocks - 1) * self.rows + width]
        return reached.unfold(0, width, self.rows).view(self.n_filters, -1, width)

    def band(self, filters: Tensor) -> Tensor:
        """Return (F, left + R + right, R): column j holds its filter where output j sees.

        Read from the last row to the first, each row is the one before, moved by one: a view.
        """
        first, width = self.before - self.left, self.left + self.rows + self.right
        taps = pad(filters, (self.rows - 1, self.rows - 1))
        turned = taps[:, first : first + width + self.rows - 1].flip(1)
        return turned.unfold(1, self.rows, 1).flip(1)

    def products(self, line: Tensor, filters: Tensor) -> Tensor:
        """Return the outputs of all blocks, (F, blocks, R)."""
        piece, *others = torch.split(self.band(filters), self.rows, 1)
        total = self.seen(line, 0, piece.shape[1]).bmm(piece)
        for start, piece in enumerate(others, 1):
            total.baddbmm_(self.seen(line, start * self.rows, piece.shape[1]), piece)
        return total

    def by_filters(self, line: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient of the filters from that of all blocks, (F, blocks, R)."""
        width = self.rows + self.kernel_size - 1
        band = line.new_zeros(self.n_filters, self.rows, width)
        first, behind = self.before - self.left, self.before + self.rows + self.right
        pieces = torch.split(band[:, :, first:behind], self.rows, 2)
        for start, piece in enumerate(pieces):
            seen = self.seen(line, start * self.rows, piece.shape[2])
            piece.copy_(gradient.mT.bmm(seen))
        sizes = (self.n_filters, self.rows, self.kernel_size)
        return band.as_strided(sizes, (self.rows * width, width + 1, 1)).sum(1)

    def tokens(self, blocks: Tensor) -> Tensor:
        """Return (F, blocks, R) without what stands for zeros, (D, B, N)."""
        d_model, batch, seq_len = self.shape
        return blocks.view(d_model, batch, self.length)[:, :, :seq_len]


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
    rows = min(seq_len, tokens_of_block(kernel_size, SHORT_BY_TOKEN))
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
