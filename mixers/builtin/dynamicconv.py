"""Dynamic convolution: every token computes the filters that it applies to its neighbours."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import glu, pad

from mixers.base import TokenMixer, band, init_linear, zero_padding
from mixers.config import MixerConfig, MixerTraits
from mixers.convolution import sides
from mixers.toeplitz import convolve_each


class DynamicConfig(MixerConfig):
    """Config of `dynamicconv`.

    Attributes:
        kernel_size: Taps per filter, at least 2: the softmax over one tap is 1. Aligned as in
            `sepconv`.
        n_heads: Filters per token; each serves `d_model / n_heads` consecutive channels.
    """

    kind: Literal["dynamicconv"] = "dynamicconv"
    kernel_size: Annotated[int, Field(ge=2)] = 31
    n_heads: Annotated[int, Field(ge=1)] = 8

    def conflicts(self, *, d_model: int, max_seq_len: int) -> Iterator[tuple[str, str]]:
        """Heads must divide the width."""
        if d_model % self.n_heads:
            yield "n_heads", f"{self.n_heads} must divide d_model {d_model}"


class DynamicConvolution(TokenMixer[DynamicConfig]):
    """GLU, then W_O DynamicConv(X) (Wu et al. 2019, section 4).

    As `lightconv`, but the K taps of head h at token i are softmax(W^Q_h X_i), X being the output
    of the gated linear unit; W^Q has no bias. Taps that fall on padding or off the input keep their
    share of the softmax and meet zeros. With `causal` the whole filter looks back.

    Shapes: x (B, N, D); `gate` (2 D, D) with bias, `filters` W^Q (H K, D) without, `out` (D, D)
    with bias. `forward` takes band products in blocks, `reference` gathers every window.
    """

    config_type: ClassVar[type[MixerConfig]] = DynamicConfig
    symbol: ClassVar[str] = "D"

    def __init__(
        self, config: DynamicConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.before, self.after = sides(config.kernel_size, causal=causal)
        self.gate = init_linear(nn.Linear(d_model, 2 * d_model))
        taps = config.n_heads * config.kernel_size
        self.filters = init_linear(nn.Linear(d_model, taps, bias=False))
        self.out = init_linear(nn.Linear(d_model, d_model))

    @classmethod
    def traits(cls, config: DynamicConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach=config.kernel_size // 2,
            reach_causal=config.kernel_size - 1,
            linear=False,
            position_aware=True,
            causal=True,
            fixed_length=False,
            cost="n",
            source="Wu et al. 2019 (arXiv 1901.10430), section 4: DynamicConv",
        )

    @classmethod
    def connections(cls, config: DynamicConfig, *, seq_len: int, causal: bool = False) -> Tensor:
        """Return the band of the filters."""
        return band(seq_len, *sides(config.kernel_size, causal=causal))

    @classmethod
    def flops(cls, config: DynamicConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of the gate (2 D wide), the filters, the direct convolution and W_O."""
        taps = 2 * seq_len * d_model * config.kernel_size
        return 6 * seq_len * d_model**2 + taps * (config.n_heads + 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update."""
        gated, weights = self.filtered(x, mask)
        out: Tensor = self.out(convolve_each(gated, weights, before=self.before))
        return out

    def reference(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update from every token's window (B, N, H, D / H, K) and filters."""
        gated, weights = self.filtered(x, mask)
        windows = pad(gated, (0, 0, self.before, self.after)).unfold(1, self.config.kernel_size, 1)
        heads = (self.config.n_heads, self.d_model // self.config.n_heads)
        windows = windows.view(*x.shape[:2], *heads, self.config.kernel_size)
        mixed = torch.matmul(windows, weights[..., None])
        out: Tensor = self.out(mixed.flatten(2))
        return out

    def filtered(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the gated input (B, N, D) and every token's filters (B, N, H, K)."""
        gated = zero_padding(glu(self.gate(zero_padding(x, mask))), mask)
        taps = self.filters(gated).view(*x.shape[:2], self.config.n_heads, self.config.kernel_size)
        return gated, taps.softmax(-1)
