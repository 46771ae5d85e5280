"""The contract of a token mixer.

Shape letters of the whole package: B batch, N tokens (the paper's n), D `d_model` (its d),
H heads, E `d_head`, F filters, K `kernel_size`. Tensors are batch-first: `x: (B, N, D)`,
`mask: (B, N)` bool, True = real token. The paper's X is D x N with tokens as columns; ours is its
transpose, so the paper's W X is `x @ W.T` and its X W_P is `W_P.T @ x`.
"""

import typing
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Literal, TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from mixers.config import MixerConfig, MixerTraits
from mixers.errors import MixerError, SpecError

ConfigT = TypeVar("ConfigT", bound=MixerConfig)


class TokenMixer(nn.Module, ABC, Generic[ConfigT]):
    """Mixes information across tokens; never changes the shape.

    A mixer returns the *update* only: residual, normalisation and dropout belong to the block.
    Padding must not matter: outputs at real tokens do not depend on what stands under the padding
    (NaN and inf included) nor on how much follows it; a row without a real token gives finite
    values and gradients.

    Args:
        config: The mixer's config.
        d_model: Features per token.
        max_seq_len: Longest input in tokens.
        causal: Forbid every look ahead; refused unless the traits claim `causal`.

    Raises:
        SpecError: The config does not fit `d_model` or `max_seq_len`.
        MixerError: `causal=True` for a mixer that cannot be causal.
    """

    config_type: ClassVar[type[MixerConfig]]
    symbol: ClassVar[str] = "?"
    config: ConfigT

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if ABC in cls.__bases__:
            return
        kind_of(cls)
        symbol: Any = cls.symbol
        is_one = isinstance(symbol, str) and len(symbol) == 1
        if not (is_one and symbol.isprintable() and not symbol.isspace()):
            raise TypeError(f"{cls.__name__}.symbol must be one visible character, not {symbol!r}")

    def __init__(
        self, config: ConfigT, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__()
        resolved = config.resolve(d_model=d_model, max_seq_len=max_seq_len)
        for field, problem in resolved.conflicts(d_model=d_model, max_seq_len=max_seq_len):
            raise SpecError(f"{config.kind}.{field}: {problem}")
        if causal and not self.traits(resolved).causal:
            raise MixerError(
                f"mixer {config.kind!r} cannot be causal: it looks ahead by definition; "
                "build it with causal=False or choose a mixer whose traits claim causal"
            )
        self.config = resolved
        self.d_model = d_model
        self.max_seq_len = max_seq_len
        self.causal = causal

    @classmethod
    @abstractmethod
    def traits(cls, config: ConfigT) -> MixerTraits:
        """Return the claims for this config; a pure function."""

    @classmethod
    def connections(cls, config: ConfigT, *, seq_len: int, causal: bool = False) -> Tensor:
        """Return which tokens each output may see, (N, N) bool: entry (j, i) is output j, token i.

        By default every token within the claimed reach. A mixer that sees some of them only (a
        pattern) overrides this; then it is a claim of its own and must be exact.
        """
        traits = cls.traits(config)
        reach = traits.reach_as_built(causal=causal)
        side = seq_len if reach == "global" else reach
        return band(seq_len, side, 0 if causal else side)

    @classmethod
    def declared_connections(cls, config: ConfigT, *, seq_len: int, causal: bool = False) -> Tensor:
        """Return `connections`, looked at.

        Raises:
            MixerError: They are no (N, N) bool tensor.
        """
        found = cls.connections(config, seq_len=seq_len, causal=causal)
        if not isinstance(found, Tensor):
            got = type(found).__name__
        elif found.shape != (seq_len, seq_len) or found.dtype != torch.bool:
            got = f"{tuple(found.shape)} {found.dtype}"
        else:
            return found
        raise MixerError(
            f"connections() of mixer {config.kind!r} must give a ({seq_len}, {seq_len}) bool "
            f"tensor, got {got}"
        )

    @classmethod
    @abstractmethod
    def flops(cls, config: ConfigT, *, d_model: int, seq_len: int) -> int:
        """Return the FLOPs (2 x MAC) of one forward of one sequence, by the definition.

        They are those of `reference`, whatever route `forward` takes, so they do not depend on
        the machine.
        """

    @property
    def reach(self) -> int | Literal["global"]:
        """The claimed reach of the mixer as it was built, causal or not."""
        return self.traits(self.config).reach_as_built(causal=self.causal)

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update, (B, N, D) -> (B, N, D); `mask` (B, N) bool, True = real token."""

    def reference(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the same update straight from the definition; override if `forward` does not."""
        out: Tensor = self.forward(x, mask)
        return out


def kind_of(cls: type) -> str:
    """Return the kind a plugin class is bound to: the Literal of `config_type.kind`.

    Raises:
        TypeError: No `config_type`, or its `kind` is not a Literal of one name.
    """
    config_type = getattr(cls, "config_type", None)
    if not (isinstance(config_type, type) and issubclass(config_type, MixerConfig)):
        raise TypeError(
            f"{cls.__name__} needs a class attribute config_type, a subclass of MixerConfig"
        )
    kinds = typing.get_args(config_type.model_fields["kind"].annotation)
    if len(kinds) != 1 or not isinstance(kinds[0], str):
        raise TypeError(f'{config_type.__name__}.kind must be a Literal of one name: Literal["x"]')
    return kinds[0]


def default_config(cls: type[TokenMixer[Any]]) -> MixerConfig | None:
    """Return what a mixer's kind alone gives, or None where a setting must be given.

    Raises:
        pydantic.ValidationError: A default is no valid value.
    """
    fields = cls.config_type.model_fields.items()
    if any(field.is_required() for name, field in fields if name != "kind"):
        return None
    return cls.config_type.model_validate({"kind": kind_of(cls)})


def flaw_of(cls: type[TokenMixer[Any]]) -> str | None:
    """Return what is wrong with a mixer's config or its claims, or None.

    Whatever lists or describes mixers reads both, and one that fails there would fail for all.
    """
    part = "the JSON Schema of its config"
    try:
        cls.config_type.model_json_schema()
        part = "its default config"
        config = default_config(cls)
        part = "traits() of its default config"
        traits = None if config is None else cls.traits(config)
    except ValidationError as error:
        from mixers.explain import explain

        return f"{part} is not valid: {'; '.join(explain(error, cls.config_type))}"
    except Exception as error:  # whatever a plugin's code raises
        return f"{part} fails: {type(error).__name__}: {' '.join(str(error).split())}"
    if config is not None and not isinstance(traits, MixerTraits):
        return f"{part} gives {type(traits).__name__}, not MixerTraits"
    return None


def zero_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return x (B, N, ...) with padded positions set to zero, whatever stands there.

    Multiplying by the mask would keep NaN and inf; choosing does not, neither in the gradient.
    """
    if mask is None:
        return x
    return torch.where(mask.view(*mask.shape, *[1] * (x.dim() - 2)), x, 0.0)


def band(seq_len: int, before: int, after: int) -> Tensor:
    """Return (N, N) bool: output j sees token i where -after <= j - i <= before."""
    places = torch.arange(seq_len)
    distance = places[:, None] - places
    return (distance <= before) & (distance >= -after)


def init_linear(linear: nn.Linear) -> nn.Linear:
    """Initialise a projection: weights N(0, 0.25 / fan_in), bias 0; returns it.

    The standard deviation is BERT's 0.02 at width 768 (0.018 here) and keeps its proportion to the
    width elsewhere, so narrow models do not start with updates far smaller than wide ones.
    """
    nn.init.normal_(linear.weight, std=0.5 * linear.in_features**-0.5)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear
