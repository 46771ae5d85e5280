"""A token mixer that shifts channels along the sequence."""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from mixers import MixerConfig, MixerTraits, TokenMixer, zero_padding


class ShiftConfig(MixerConfig):
    """How far the channels move, and which share of them moves each way."""

    kind: Literal["acme-mixers.shift"] = "acme-mixers.shift"
    distance: Annotated[int, Field(ge=1)] = 1
    share: Annotated[float, Field(gt=0.0, le=0.5)] = 0.25


class Shift(TokenMixer[ShiftConfig]):
    """W_O shift(x): some channels come from the left, some from the right, the rest stay."""

    config_type: ClassVar[type[MixerConfig]] = ShiftConfig
    symbol: ClassVar[str] = "T"

    def __init__(
        self, config: ShiftConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.moved = max(1, int(config.share * d_model))
        self.out = nn.Linear(d_model, d_model)

    @classmethod
    def traits(cls, config: ShiftConfig) -> MixerTraits:
        """What the mixer claims; the conformance kit measures every line."""
        return MixerTraits(
            reach=config.distance,
            linear=True,
            position_aware=True,
            causal=False,
            fixed_length=False,
            cost="n",
            source="Wang et al. 2022 (arXiv 2201.10801), in one dimension",
        )

    @classmethod
    def flops(cls, config: ShiftConfig, *, d_model: int, seq_len: int) -> int:
        """2 x multiply-adds of the projection; moving channels costs none."""
        return 2 * seq_len * d_model**2

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, N, D) -> (B, N, D), the update only."""
        step, still = min(self.config.distance, x.shape[1]), x.shape[-1] - 2 * self.moved
        left, right, rest = zero_padding(x, mask).split([self.moved, self.moved, still], dim=-1)
        left, right = pad(left, (0, 0, step, -step)), pad(right, (0, 0, -step, step))
        return self.out(torch.cat([left, right, rest], dim=-1))
