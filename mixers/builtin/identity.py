"""No mixing at all: the control that every other mixer must beat."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from mixers.base import TokenMixer
from mixers.config import MixerConfig, MixerTraits


class IdentityConfig(MixerConfig):
    """Config of `identity`; it has no settings."""

    kind: Literal["identity"] = "identity"


class Identity(TokenMixer[IdentityConfig]):
    """Update 0: the block keeps its residual and its feed-forward layer, tokens stay apart.

    Shapes: x (B, N, D) -> (B, N, D), all zero. No parameters, no FLOPs.
    """

    config_type: ClassVar[type[MixerConfig]] = IdentityConfig
    symbol: ClassVar[str] = "0"

    @classmethod
    def traits(cls, config: IdentityConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach=0,
            linear=True,
            position_aware=False,
            causal=True,
            fixed_length=False,
            cost="n",
            source="control: a block without token mixing",
        )

    @classmethod
    def flops(cls, config: IdentityConfig, *, d_model: int, seq_len: int) -> int:
        """Return 0."""
        return 0

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return zeros."""
        return torch.zeros_like(x)
