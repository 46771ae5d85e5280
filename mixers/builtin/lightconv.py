"""Lightweight convolution: few filters, each normalised by a softmax over its taps."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import conv1d, glu, pad

from mixers.base import TokenMixer, band, init_linear, zero_padding
from mixers.config import MixerConfig, MixerTraits
from mixers.convolution import gated_convolution, sides


class LightweightConfig(MixerConfig):
    """Config of `lightconv`.

    Attributes:
        kernel_size: Taps per filter, at least 2: the softmax over one tap is 1. Aligned as in
            `sepconv`.
        n_heads: Filters; each serves `d_model / n_heads` consecutive channels.
    """

    kind: Literal["lightconv"] = "lightconv"
    kernel_size: Annotated[int, Field(ge=2)] = 31
    n_heads: Annotated[int, Field(ge=1)] = 8

    def conflicts(self, *, d_model: int, max_seq_len: int) -> Iterator[tuple[str, str]]:
        """Heads must divide the width."""
        if d_model % self.n_heads:
            yield "n_heads", f"{self.n_heads} must divide d_model {d_model}"


class LightweightConvolution(TokenMixer[LightweightConfig]):
    """GLU, then W_O LightConv(X) (Wu et al. 2019, section 3).

    Channel c of token i becomes sum_k softmax(W_h)_k X_(i - before + k), c with head
    h = c // (D / H). The softmax runs over all K taps, also where some fall off the input: what
    lies there counts as zero, and so does padding. With `causal` the whole filter looks back. The
    paper drops taps at random in training (DropConnect); this does not.

    Shapes: x (B, N, D); `gate` (2 D, D) with bias, `filters` W (H, K) without, `out` (D, D) with
    bias. `forward` takes band products, `reference` the plain depthwise convolution.
    """

    config_type: ClassVar[type[MixerConfig]] = LightweightConfig
    symbol: ClassVar[str] = "L"

    def __init__(
        self, config: LightweightConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.before, self.after = sides(config.kernel_size, causal=causal)
        self.gate = init_linear(nn.Linear(d_model, 2 * d_model))
        self.filters = nn.Parameter(torch.empty(config.n_heads, config.kernel_size))
        nn.init.normal_(self.filters)
        self.out = init_linear(nn.Linear(d_model, d_model))

    @classmethod
    def traits(cls, config: LightweightConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach=config.kernel_size // 2,
            reach_causal=config.kernel_size - 1,
            linear=False,
            position_aware=True,
            causal=True,
            fixed_length=False,
            cost="n",
            source="Wu et al. 2019 (arXiv 1901.10430), section 3: LightConv",
        )

    @classmethod
    def connections(
        cls, config: LightweightConfig, *, seq_len: int, causal: bool = False
    ) -> Tensor:
        """Return the band of the filter."""
        return band(seq_len, *sides(config.kernel_size, causal=causal))

    @classmethod
    def flops(cls, config: LightweightConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of the gate (2 D wide), the direct convolution and W_O."""
        return 6 * seq_len * d_model**2 + 2 * seq_len * d_model * config.kernel_size

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update."""
        mixed = gated_convolution(self.gate, self.filters.softmax(-1), x, mask, before=self.before)
        out: Tensor = self.out(mixed)
        return out.view_as(x)

    def reference(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update with the convolution taken directly."""
        gated = zero_padding(glu(self.gate(zero_padding(x, mask))), mask)
        shared = self.d_model // self.config.n_heads
        weight = self.filters.softmax(-1).repeat_interleave(shared, 0)[:, None]
        mixed = conv1d(pad(gated.mT, (self.before, self.after)), weight, groups=self.d_model)
        out: Tensor = self.out(mixed.mT)
        return out
