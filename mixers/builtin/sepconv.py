"""Depthwise-separable convolution with few, reused filters."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import conv1d, glu, pad

from mixers.base import TokenMixer, init_linear, zero_padding
from mixers.config import MixerConfig, MixerTraits


class SeparableConfig(MixerConfig):
    """Config of `sepconv`.

    Attributes:
        kernel_size: Taps per filter. An output sees (K - 1) // 2 tokens before and K // 2 after
            its own: an even filter looks one token further ahead (as PyTorch's padding "same").
        n_filters: Filters; each serves `d_model / n_filters` consecutive channels.
    """

    kind: Literal["sepconv"] = "sepconv"
    kernel_size: Annotated[int, Field(ge=1)] = 31
    n_filters: Annotated[int, Field(ge=1)] = 8

    def conflicts(self, *, d_model: int, max_seq_len: int) -> Iterator[tuple[str, str]]:
        """Filters must divide the width."""
        if d_model % self.n_filters:
            yield "n_filters", f"{self.n_filters} must divide d_model {d_model}"


class SeparableConvolution(TokenMixer[SeparableConfig]):
    """GLU, then W_O (X * W_C) (Yun et al. 2020, equation 6 and appendix D; Wu et al. 2019).

    (X * W_C) correlates every channel with its filter; channel c uses filter c // (D / F). Padding
    is cleared after the gated linear unit, whose bias would leak into the window otherwise. With
    `causal` the whole filter looks back.

    Shapes: x (B, N, D); `gate` (2 D, D) with bias, `filters` (F, K) without, `out` (D, D) with
    bias. A filter shared by many channels is a band matrix over tokens, so `forward` takes a
    matrix product per filter; `reference` is the plain depthwise convolution, and FLOPs are its.
    """

    config_type: ClassVar[type[MixerConfig]] = SeparableConfig
    symbol: ClassVar[str] = "S"

    def __init__(
        self, config: SeparableConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.before = config.kernel_size - 1 if causal else (config.kernel_size - 1) // 2
        self.after = config.kernel_size - 1 - self.before
        self.gate = init_linear(nn.Linear(d_model, 2 * d_model))
        self.filters = nn.Parameter(torch.empty(config.n_filters, config.kernel_size))
        nn.init.normal_(self.filters, std=config.kernel_size**-0.5)
        self.out = init_linear(nn.Linear(d_model, d_model))

    @classmethod
    def traits(cls, config: SeparableConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach=config.kernel_size // 2,
            linear=False,
            position_aware=True,
            causal=True,
            fixed_length=False,
            cost="n",
            source="Yun et al. 2020 (arXiv 1912.10077), equation (6) and appendix D",
        )

    @classmethod
    def flops(cls, config: SeparableConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of the gate (2 D wide), the direct convolution and W_O."""
        return 6 * seq_len * d_model**2 + 2 * seq_len * d_model * config.kernel_size

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update."""
        gated = zero_padding(glu(self.gate(zero_padding(x, mask))), mask)
        out: Tensor = self.out(self.convolve(gated))
        return out

    def reference(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update with the convolution taken directly."""
        gated = zero_padding(glu(self.gate(zero_padding(x, mask))), mask)
        weight = self.filters.repeat_interleave(self.d_model // len(self.filters), 0)[:, None]
        mixed = conv1d(pad(gated.mT, (self.before, self.after)), weight, groups=self.d_model)
        out: Tensor = self.out(mixed.mT)
        return out

    def convolve(self, x: Tensor) -> Tensor:
        """Correlate every channel of x (B, N, D) with its filter by one product per filter."""
        batch, seq_len, _ = x.shape
        n_filters = len(self.filters)
        grouped = x.view(batch, seq_len, n_filters, -1).permute(2, 1, 0, 3)
        flat = grouped.reshape(n_filters, seq_len, -1)
        mixed = torch.bmm(self.bands(seq_len), flat)
        return mixed.view(n_filters, seq_len, batch, -1).permute(2, 1, 0, 3).reshape(x.shape)

    def bands(self, seq_len: int) -> Tensor:
        """Return the filters as band matrices, (F, N, N): entry (j, i) is the tap from i to j."""
        places = torch.arange(seq_len, device=self.filters.device)
        taps = places[None, :] - places[:, None] + self.before
        inside = (taps >= 0) & (taps < self.config.kernel_size)
        picked = self.filters[:, taps.clamp(0, self.config.kernel_size - 1)]
        return picked.where(inside, 0.0)
