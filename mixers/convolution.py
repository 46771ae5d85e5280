"""Convolution along the sequence with shared filters, by whichever route is fastest for its shape.

Four back ends give the same numbers up to rounding: `direct` is PyTorch's depthwise convolution,
`band` one product with a band matrix per filter, `blocks` the same cut into blocks of tokens (work
linear in N), `fft` the convolution theorem. Which one runs is read from a committed table, a pure
function of device type, dtype and shape: it is never measured while a model runs, so runs repeat
and resumed runs are the same bit by bit. The batch size is no part of it: a row alone is computed
as it is in a batch. Letters: B batch, N tokens, D features, F filters, K taps.
"""

from typing import get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, glu, pad

from mixers.base import zero_padding
from mixers.convolution_table import KERNEL_SIZES, SEQ_LENS, SHARED, TABLE, Backend
from mixers.toeplitz import SHORT_SHARED, by_blocks, tokens_of_block

BACKENDS: tuple[Backend, ...] = get_args(Backend)
LONGEST_BAND = 128
"""Longest input taken as one product: a band matrix over N tokens has N^2 entries per filter."""


def sides(kernel_size: int, *, causal: bool) -> tuple[int, int]:
    """Return how many tokens a filter sees (before, after) an output's own.

    Centred, an even filter looks one token further ahead (as PyTorch's padding "same"); causal, it
    looks back only.
    """
    before = kernel_size - 1 if causal else (kernel_size - 1) // 2
    return before, kernel_size - 1 - before


def gated_convolution(
    gate: nn.Linear, filters: Tensor, x: Tensor, mask: Tensor | None, *, before: int
) -> Tensor:
    """Return the gated linear unit of x, convolved; padding counts as zero.

    The projection is taken transposed, so what a filter meets lies side by side and no copy changes
    the layout.

    Args:
        gate: Projection to values and gates, (2 D, D).
        filters: (F, K).
        x: Input (B, N, D).
        mask: (B, N) bool, True = real token.
        before: Taps that look at tokens before an output's own.

    Returns:
        (B N, D), a transposed view.
    """
    batch, seq_len, _ = x.shape
    tokens = zero_padding(x, mask).flatten(0, 1)
    both = torch.addmm(gate.bias[:, None], gate.weight, tokens.T).view(-1, batch, seq_len)
    if mask is None:
        return convolve(both, filters, before=before, gated=True).flatten(1).T
    gated = torch.where(mask, glu(both, 0), 0.0)
    return convolve(gated, filters, before=before).flatten(1).T


def convolve(
    x: Tensor,
    filters: Tensor,
    *,
    before: int,
    backend: Backend | None = None,
    gated: bool = False,
) -> Tensor:
    """Correlate every channel with its filter; zeros stand around the input.

    Args:
        x: Input (D, B, N), or (2 D, B, N) with `gated`.
        filters: (F, K); channel c uses filter c // (D / F).
        before: Taps that look at tokens before an output's own.
        backend: The route to take; by default `choose` says.
        gated: Whether x is values and gates, whose gated linear unit is convolved.

    Returns:
        (D, B, N), entry j the sum over k of filter[k] x[j - before + k].
    """
    d_model, _, seq_len = x.shape
    if gated:
        d_model //= 2
    if backend is None:
        backend = choose(
            x.device.type,
            x.dtype,
            kernel_size=filters.shape[1],
            seq_len=seq_len,
            shared=d_model // len(filters),
        )
    # Taps that fall off the input wherever the filter stands only cost.
    first, behind = max(0, before - seq_len + 1), before + seq_len
    filters, before = filters[:, first:behind], before - first
    if backend in ("band", "blocks"):
        rows = seq_len if backend == "band" else tokens_of_block(filters.shape[1], SHORT_SHARED)
        return by_blocks(x, filters, before, rows, gated=gated)
    by = by_direct if backend == "direct" else by_fft
    return by(glu(x, 0) if gated else x, filters, before)


def choose(
    device: str, dtype: torch.dtype, *, kernel_size: int, seq_len: int, shared: int
) -> Backend:
    """Return the back end of the committed table.

    The table lists sizes in steps; a size between two is read as the larger one, a size beyond the
    last as the last. Devices that nobody measured are read as a CPU, float64 as float32 and float16
    as bfloat16.

    Args:
        device: Type of the device, such as "cpu".
        dtype: Of the input.
        kernel_size: Taps per filter.
        seq_len: Tokens.
        shared: Channels per filter.
    """
    half = dtype in (torch.float16, torch.bfloat16)
    rows = TABLE.get(device, TABLE["cpu"])["bfloat16" if half else "float32"]
    return rows[step(SHARED, shared)][step(KERNEL_SIZES, kernel_size)][step(SEQ_LENS, seq_len)]


def step(sizes: tuple[int, ...], size: int) -> int:
    """Return the place of the smallest listed size that is not below `size`, else of the last."""
    return sum(listed < size for listed in sizes[:-1])


def by_direct(x: Tensor, filters: Tensor, before: int) -> Tensor:
    """Convolve with PyTorch's depthwise convolution."""
    d_model, kernel_size = x.shape[0], filters.shape[1]
    weight = filters.to(x.dtype).repeat_interleave(d_model // len(filters), 0)[:, None]
    padded = pad(x.transpose(0, 1), (before, kernel_size - 1 - before))
    return conv1d(padded, weight, groups=d_model).transpose(0, 1)


def by_fft(x: Tensor, filters: Tensor, before: int) -> Tensor:
    """Convolve as a product of spectra, in at least float32."""
    seq_len = x.shape[2]
    n_filters, kernel_size = filters.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    size = fast_size(seq_len + kernel_size - 1)
    spectrum = torch.fft.rfft(pad(x.to(wide), (before, 0)), n=size)
    response = torch.fft.rfft(filters.to(wide), n=size).conj()
    product = spectrum.unflatten(0, (n_filters, -1)) * response[:, None, None]
    mixed: Tensor = torch.fft.irfft(product.flatten(0, 1), n=size)
    return mixed[..., :seq_len].to(x.dtype)


def fast_size(least: int) -> int:
    """Return the smallest 2^a or 3 * 2^a that is not below `least`: transforms of it are fast."""
    power = 1 << (least - 1).bit_length()
    return 3 * power // 4 if 3 * power // 4 >= least else power
