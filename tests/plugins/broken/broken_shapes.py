"""Classes that are no mixers, each in its own way."""

from typing import Literal

from mixers import MixerConfig, TokenMixer


class NoMixer:
    pass


class NoForwardConfig(MixerConfig):
    kind: Literal["broken-mixers.no_forward"] = "broken-mixers.no_forward"


class NoForward(TokenMixer[NoForwardConfig]):
    config_type = NoForwardConfig

    @classmethod
    def traits(cls, config):
        raise NotImplementedError

    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return 0


class OtherKindConfig(MixerConfig):
    kind: Literal["broken-mixers.something"] = "broken-mixers.something"


class OtherKind(NoForward):
    config_type = OtherKindConfig

    def forward(self, x, mask=None):
        return x
