"""Fourier mixing: the real part of a two-dimensional discrete Fourier transform."""

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor

from mixers.base import TokenMixer, zero_padding
from mixers.config import MixerConfig, MixerTraits


class FourierConfig(MixerConfig):
    """Config of `fourier`.

    Attributes:
        orthonormal: Divide by sqrt(n d_model), which keeps the size of the tokens; FNet does not
            and relies on the norm after the residual sum.
    """

    kind: Literal["fourier"] = "fourier"
    orthonormal: bool = True


class Fourier(TokenMixer[FourierConfig]):
    """Re(F_seq(F_hidden(X))) (Lee-Thorp et al. 2021, section 3), over real tokens only.

    n is the number of real tokens of each sequence: the transform of a padded sequence is that of
    the sequence alone. It has no parameters. Every output sees every token, so it cannot be causal.

    Shapes: x (B, N, D) -> (B, N, D). Computed in at least float32. Without a mask this is one fast
    transform; with one, rows of different lengths are transformed together by Bluestein's
    identity, 2 jk = j^2 + k^2 - (k - j)^2, which turns each into one convolution of one size for
    all. No parameters.
    """

    config_type: ClassVar[type[MixerConfig]] = FourierConfig
    symbol: ClassVar[str] = "F"

    @classmethod
    def traits(cls, config: FourierConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach="global",
            linear=True,
            position_aware=True,
            causal=False,
            fixed_length=False,
            cost="n log n",
            source="Lee-Thorp et al. 2021 (arXiv 2105.03824), section 3: FNet",
        )

    @classmethod
    def flops(cls, config: FourierConfig, *, d_model: int, seq_len: int) -> int:
        """Return 2.5 per number and level: fast transforms of real input along both axes."""
        levels = math.log2(max(2, seq_len)) + math.log2(max(2, d_model))
        return round(2.5 * seq_len * d_model * levels)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        norm = "ortho" if self.config.orthonormal else "backward"
        if mask is None:
            whole: Tensor = torch.fft.fft2(wide, dim=(1, 2), norm=norm)
            return whole.real.to(x.dtype)
        spectrum = torch.fft.fft(zero_padding(wide, mask), dim=2, norm=norm)
        # Real tokens come first, in their order; with padding on the right nothing moves.
        order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
        length = mask.sum(1).clamp(min=1)
        moved = transform(spectrum.gather(1, order[..., None].expand_as(spectrum)), length)
        back = order.argsort(dim=1)
        out = moved.gather(1, back[..., None].expand_as(moved)).real
        if self.config.orthonormal:
            out = out / length[:, None, None].to(out.dtype).sqrt()
        return out.to(x.dtype)


def transform(z: Tensor, length: Tensor) -> Tensor:
    """Return the transform of the first `length` (B,) tokens of each row of z (B, N, C), complex.

    What lies behind must be zero; outputs behind are finite and mean nothing.
    """
    seq_len = z.shape[1]
    places = torch.arange(seq_len, device=z.device)
    # The angle is pi j^2 / n; taken modulo 2 n first, as integers, it keeps all its digits.
    turns = (places.square() % (2 * length[:, None])).to(z.real.dtype) / length[:, None]
    chirp = torch.polar(torch.ones_like(turns), -math.pi * turns)
    size = 1 << (2 * seq_len - 1).bit_length()
    kernel = torch.cat(
        [chirp, chirp.new_zeros(len(z), size + 1 - 2 * seq_len), chirp[:, 1:].flip(1)], dim=1
    ).conj()
    product = torch.fft.fft(z * chirp[..., None], n=size, dim=1) * torch.fft.fft(kernel)[..., None]
    out: Tensor = torch.fft.ifft(product, dim=1)[:, :seq_len] * chirp[..., None]
    return out
