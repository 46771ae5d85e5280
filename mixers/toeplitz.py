"""Convolution along the sequence as products with band matrices.

A filter shared by many channels is a band matrix over tokens, so correlating with it is a matrix
product per filter: the same numbers as the plain depthwise convolution, several times sooner.
Long inputs are cut into blocks of outputs, each with the window of inputs that it sees, so the
work stays linear in N. Letters: B batch, N tokens, D features, F filters, K taps.
"""

from torch import Tensor
from torch.nn.functional import pad

WHOLE = 128
"""Longest input taken as one product; measured on a CPU, as is BLOCK."""
BLOCK = 64
"""Outputs per product for longer input."""


def sides(kernel_size: int, *, causal: bool) -> tuple[int, int]:
    """Return how many tokens a filter sees (before, after) an output's own.

    Centred, an even filter looks one token further ahead (as PyTorch's padding "same"); causal, it
    looks back only.
    """
    before = kernel_size - 1 if causal else (kernel_size - 1) // 2
    return before, kernel_size - 1 - before


def convolve(x: Tensor, filters: Tensor, *, before: int) -> Tensor:
    """Correlate every channel with its filter; zeros stand around the input.

    Args:
        x: Input (B, N, D).
        filters: (F, K); channel c uses filter c // (D / F).
        before: Taps that look at tokens before an output's own.

    Returns:
        (B, N, D), entry j the sum over k of filter[k] x[j - before + k].
    """
    batch, seq_len, d_model = x.shape
    n_filters, kernel_size = filters.shape
    after = kernel_size - 1 - before
    rows = seq_len if seq_len <= WHOLE else BLOCK
    n_blocks = -(-seq_len // rows)
    band = bands(filters, rows)
    if n_blocks == 1:
        windows = x.mT[:, None]
        band = band[:, :, before : before + seq_len]
    else:
        missing = n_blocks * rows - seq_len
        padded = pad(x, (0, 0, before, after + missing))
        windows = padded.unfold(1, rows + kernel_size - 1, rows)
    split = (batch, n_blocks, n_filters, d_model // n_filters, windows.shape[-1])
    by_filter = windows.view(split).permute(2, 4, 0, 1, 3)
    columns = batch * n_blocks * d_model // n_filters
    mixed = band.bmm(by_filter.reshape(n_filters, band.shape[2], columns))
    mixed = mixed.view(n_filters, rows, batch, n_blocks, d_model // n_filters)
    return mixed.permute(2, 3, 1, 0, 4).reshape(batch, n_blocks * rows, d_model)[:, :seq_len]


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
    n_blocks = -(-seq_len // rows)
    missing = n_blocks * rows - seq_len
    width = rows + kernel_size - 1
    padded = pad(x, (0, 0, before, kernel_size - 1 - before + missing))
    windows = padded.unfold(1, width, rows)
    windows = windows.reshape(batch, n_blocks, n_filters, d_model // n_filters, width)
    cells = (batch, n_blocks, rows, n_filters, kernel_size)
    filters = pad(weights, (0, 0, 0, 0, 0, missing)).view(cells).transpose(2, 3)
    mixed = windows @ banded(filters).mT
    return mixed.permute(0, 1, 4, 2, 3).reshape(batch, n_blocks * rows, d_model)[:, :seq_len]


def bands(filters: Tensor, rows: int) -> Tensor:
    """Return each filter as a band matrix, (F, rows, rows + K - 1): row j holds it from j on."""
    return banded(filters[:, None].expand(-1, rows, -1))


def banded(filters: Tensor) -> Tensor:
    """Return (..., rows, rows + K - 1) from (..., rows, K): row j holds its filter from j on.

    Filters followed by `rows` zeros, put in a line and read one step shorter per row, shift right
    row by row: no index, so the gradient is a sum and not a scatter.
    """
    rows, kernel_size = filters.shape[-2:]
    width = rows + kernel_size - 1
    line = pad(filters, (0, rows)).flatten(-2)
    return line[..., : rows * width].view(*line.shape[:-1], rows, width)
