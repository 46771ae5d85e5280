"""Depthwise-separable convolution with few, reused filters."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import conv1d, glu, pad

from mixers.base import TokenMixer, band, init_linear, zero_padding
from mixers.config import MixerConfig, MixerTraits
from mixers.convolution import gated_convolution, sides


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
        self.before, self.after = sides(config.kernel_size, causal=causal)
        self.gate = init_linear(nn.Linear(d_model, 2 * d_model))
        self.filters = nn.Parameter(torch.empty(config.n_filters, config.kernel_size))
        nn.init.normal_(self.filters, std=config.kernel_size**-0.5)
        self.out = init_linear(nn.Linear(d_model, d_model))

    @classmethod
    def traits(cls, config: SeparableConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach=config.kernel_size // 2,
            reach_causal=config.kernel_size - 1,
            linear=False,
            position_aware=config.kernel_size > 1,
            causal=True,
            fixed_length=False,
            cost="n",
            source="Yun et al. 2020 (arXiv 1912.10077), equation (6) and appendix D",
        )

    @classmethod
    def connections(cls, config: SeparableConfig, *, seq_len: int, causal: bool = False) -> Tensor:
        """Return the band of the filter."""
        return band(seq_len, *sides(config.kernel_size, causal=causal))

    @classmethod
    def flops(cls, config: SeparableConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of the gate (2 D wide), the direct convolution and W_O."""
        return 6 * seq_len * d_model**2 + 2 * seq_len * d_model * config.kernel_size

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update."""
        mixed = gated_convolution(self.gate, self.filters, x, mask, before=self.before)
        out: Tensor = self.out(mixed)
        return out.view_as(x)

    def reference(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update with the convolution taken directly."""
        gated = zero_padding(glu(self.gate(zero_padding(x, mask))), mask)
        weight = self.filters.repeat_interleave(self.d_model // len(self.filters), 0)[:, None]
        mixed = conv1d(pad(gated.mT, (self.before, self.after)), weight, groups=self.d_model)
        out: Tensor = self.out(mixed.mT)
        return out
