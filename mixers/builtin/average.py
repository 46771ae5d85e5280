"""Average attention: every token receives the same mean."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from mixers.base import TokenMixer, init_linear, zero_padding
from mixers.config import MixerConfig, MixerTraits


class AverageConfig(MixerConfig):
    """Config of `average`; it has no settings."""

    kind: Literal["average"] = "average"


class AverageAttention(TokenMixer[AverageConfig]):
    """Attention whose weights are all 1/n: W X (1/n) 1 1^T (Yun et al. 2020, appendix D).

    The paper's text says "all the other tokens", its formula includes the token itself; this
    follows the formula. n counts real tokens only. With `causal`, token j receives the mean of
    tokens 1..j.

    Shapes: x (B, N, D); one projection W (D, D) with bias. The mean of projections equals the
    projection of the mean, so `forward` projects once per sequence, O(N D + D^2); FLOPs are those
    of the definition, which projects every token.
    """

    config_type: ClassVar[type[MixerConfig]] = AverageConfig
    symbol: ClassVar[str] = "M"

    def __init__(
        self, config: AverageConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.out = init_linear(nn.Linear(d_model, d_model))

    @classmethod
    def traits(cls, config: AverageConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach="global",
            linear=True,
            position_aware=False,
            causal=True,
            fixed_length=False,
            cost="n",
            source="Yun et al. 2020 (arXiv 1912.10077), appendix D: average attention",
        )

    @classmethod
    def flops(cls, config: AverageConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of projecting every token; adding tokens up is not counted."""
        return 2 * seq_len * d_model**2

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the projected mean at every token."""
        out: Tensor = self.out(self.mean(zero_padding(x, mask), mask))
        return out.expand_as(x)

    def reference(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the mean of the projections."""
        projected = self.out(zero_padding(x, mask)) - self.out.bias
        return (self.mean(zero_padding(projected, mask), mask) + self.out.bias).expand_as(x)

    def mean(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return (B, 1, D), or (B, N, D) if causal; a row without real tokens gives zero."""
        if mask is None:
            mask = x.new_ones(x.shape[:2], dtype=torch.bool)
        if self.causal:
            count = mask.cumsum(1)[..., None].clamp(min=1)
            return x.cumsum(1) / count
        return x.sum(1, keepdim=True) / mask.sum(1)[:, None, None].clamp(min=1)
