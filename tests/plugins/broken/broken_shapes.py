"""Classes that are no mixers, each in its own way."""

from typing import Literal

from pydantic import ConfigDict

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


class Whole(NoForward):
    """Has all its parts."""

    def forward(self, x, mask=None):
        return x


class NoClaimsConfig(MixerConfig):
    kind: Literal["broken-mixers.no_claims"] = "broken-mixers.no_claims"


class NoClaims(Whole):
    config_type = NoClaimsConfig

    @classmethod
    def traits(cls, config):
        return {}["no such claim"]


class OtherClaimsConfig(MixerConfig):
    kind: Literal["broken-mixers.other_claims"] = "broken-mixers.other_claims"


class OtherClaims(Whole):
    config_type = OtherClaimsConfig

    @classmethod
    def traits(cls, config):
        return {"reach": 0}


class BadDefaultConfig(MixerConfig):
    kind: Literal["broken-mixers.bad_default"] = "broken-mixers.bad_default"
    width: int = "seven"


class BadDefault(Whole):
    config_type = BadDefaultConfig


class NoSchemaConfig(MixerConfig):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    kind: Literal["broken-mixers.no_schema"] = "broken-mixers.no_schema"
    of: Whole | None = None


class NoSchema(Whole):
    config_type = NoSchemaConfig
