"""A sound mixer with two fields of its own, one of them a tuple."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import nn
from torch.nn.functional import pad

from mixers import MixerConfig, MixerTraits, TokenMixer, zero_padding


class TapsConfig(MixerConfig):
    kind: Literal["good-mixers.taps"] = "good-mixers.taps"
    delays: tuple[int, ...] = (1, 3)
    gain: Annotated[float, Field(gt=0.0)] = 0.5


class Taps(TokenMixer[TapsConfig]):
    """Adds tokens from a few steps back, each scaled by the gain."""

    config_type: ClassVar[type[MixerConfig]] = TapsConfig
    symbol: ClassVar[str] = "t"

    def __init__(self, config, *, d_model, max_seq_len, causal=False):
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.out = nn.Linear(d_model, d_model)

    @classmethod
    def traits(cls, config):
        return MixerTraits(
            reach=max(config.delays),
            linear=True,
            position_aware=True,
            causal=True,
            fixed_length=False,
            cost="n",
            source="a test",
        )

    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return 2 * seq_len * d_model**2

    def forward(self, x, mask=None):
        x = zero_padding(x, mask)
        steps = [min(delay, x.shape[1]) for delay in self.config.delays]
        return self.out(sum(self.config.gain * pad(x, (0, 0, step, -step)) for step in steps))
