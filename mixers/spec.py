"""Specs: the validated description of an encoder, with its canonical form and id."""

import hashlib
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from mixers.activation import Activation
from mixers.config import FrozenModel, Items, MixerConfig, Since, canonical_json
from mixers.explain import explain, load
from mixers.notation import format_architecture, parse_architecture
from mixers.registry import mixer_registry
from mixers.union import AnyMixer, RegistryUnion

__all__ = [
    "AnyMixer",
    "BlockSpec",
    "EncoderSpec",
    "FrozenModel",
    "Items",
    "RegistryUnion",
    "Since",
    "canonical_json",
    "explain",
    "load",
]

Conflict = tuple[tuple[str, ...], str]


CANNOT_BE_CAUSAL = (
    "this mixer looks ahead by definition and cannot stand in a causal encoder; choose one whose "
    "traits claim causal, or causal: false"
)


def fitted(
    config: MixerConfig, *, d_model: int, max_seq_len: int, causal: bool = False
) -> tuple[MixerConfig, list[Conflict]]:
    """Return the resolved config and ((field,), problem) pairs.

    A plugin's `resolve` or `conflicts` that raises is a problem of its config as a whole.
    """
    try:
        resolved = config.resolve(d_model=d_model, max_seq_len=max_seq_len)
        pairs = resolved.conflicts(d_model=d_model, max_seq_len=max_seq_len)
        problems: list[Conflict] = [((field,), problem) for field, problem in pairs]
        if causal and not problems and not mixer_registry.load(config.kind).traits(resolved).causal:
            problems.append(((), CANNOT_BE_CAUSAL))
        return resolved, problems
    except Exception as error:
        return config, [((), f"the mixer's config raised {type(error).__name__}: {error}")]


Size = Annotated[int, Field(ge=1)]


class BlockSpec(FrozenModel):
    """One block: a token mixer and a feed-forward layer.

    Attributes:
        mixer: Config of the mixer.
        d_ff: Width of the feed-forward layer; 0 = none.
        activation: "gelu", "relu" or a `PiecewiseLinear`.
        bias: Whether the feed-forward layer has biases.
    """

    mixer: AnyMixer
    d_ff: Annotated[int, Field(ge=0)]
    activation: Activation = "gelu"
    bias: bool = True


class EncoderSpec(FrozenModel):
    """An encoder: embeddings, then blocks.

    Attributes:
        vocab_size: Number of token ids.
        d_model: Features per token.
        max_seq_len: Longest input in tokens.
        blocks: The blocks, input side first.
        norm: LayerNorm before each sub-layer and once at the end ("pre"), after each residual sum
            ("post"), or nowhere ("none").
        positions: What is added to the token embeddings.
        n_positions: Rows of the table of learned positions where it is longer than the input may
            be (BERT keeps 512 for every length); null = `max_seq_len`.
        n_segments: Number of segment ids whose embedding is added; 0 = none.
        scale_embeddings: Multiply token embeddings by sqrt(d_model) (Vaswani et al. 2017, 3.4);
            BERT does not.
        embedding_norm: LayerNorm over the summed embeddings.
        dropout: Rate after the embeddings and on each update.
        norm_eps: Epsilon of every LayerNorm.
        causal: No output sees a later token (language-model stacks); refused where a mixer cannot.
        schema_version: Version of this format.
    """

    schema_version: Literal[1] = 1
    vocab_size: Size
    d_model: Size
    max_seq_len: Size
    norm: Literal["pre", "post", "none"] = "pre"
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    n_positions: Annotated[Size | None, Since(2)] = None
    n_segments: Annotated[int, Field(ge=0)] = 0
    scale_embeddings: bool = True
    embedding_norm: bool = False
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    norm_eps: Annotated[float, Field(gt=0.0)] = 1e-5
    causal: Annotated[bool, Since(2)] = False
    blocks: Annotated[Items[BlockSpec], Field(json_schema_extra={"minItems": 1})]

    @model_validator(mode="after")
    def fit_positions(self) -> Self:
        """Drop `n_positions` where it says what `max_seq_len` says; refuse a table that is none."""
        if self.n_positions is None:
            return self
        if self.positions != "learned":
            raise ValueError(f"n_positions: positions {self.positions!r} have no table; drop it")
        if self.n_positions < self.max_seq_len:
            raise ValueError(
                f"n_positions: {self.n_positions} rows do not reach max_seq_len "
                f"{self.max_seq_len}; give at least that many"
            )
        if self.n_positions == self.max_seq_len:
            self.__dict__["n_positions"] = None
        return self

    @model_validator(mode="after")
    def fit_mixers(self) -> Self:
        """Resolve every mixer config for these sizes and refuse those that do not fit."""
        if not self.blocks:
            raise ValueError("an encoder needs at least one block")
        blocks = []
        problems: list[InitErrorDetails] = []
        for layer, block in enumerate(self.blocks):
            mixer, conflicts = fitted(
                block.mixer,
                d_model=self.d_model,
                max_seq_len=self.max_seq_len,
                causal=self.causal,
            )
            blocks.append(block.model_copy(update={"mixer": mixer}))
            problems += [
                InitErrorDetails(
                    type=PydanticCustomError("does_not_fit", "{problem}", {"problem": problem}),
                    loc=("blocks", layer, "mixer", mixer.kind, *field),
                    input=mixer,
                )
                for field, problem in conflicts
            ]
        if problems:
            raise ValidationError.from_exception_data("EncoderSpec", problems)
        # The model is frozen for everybody else; resolved configs are part of its validation.
        self.__dict__["blocks"] = tuple(blocks)
        return self

    @property
    def arch_id(self) -> str:
        """First 16 hex digits of the sha256 of the canonical JSON."""
        return hashlib.sha256(canonical_json(self).encode()).hexdigest()[:16]

    @property
    def n_layers(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    @property
    def code(self) -> str:
        """One character per layer, such as "SSSA"; for reading only."""
        return "".join(mixer_registry.load(block.mixer.kind).symbol for block in self.blocks)

    @property
    def notation(self) -> str:
        """The mixers in compact notation, such as "sepconv*2, attention"."""
        return format_architecture(
            [block.mixer for block in self.blocks],
            d_model=self.d_model,
            max_seq_len=self.max_seq_len,
        )

    @classmethod
    def of(cls, architecture: str, *, d_ff: int, **fields: Any) -> Self:
        """Build a spec from compact notation; every block gets the same feed-forward width."""
        blocks = tuple(BlockSpec(mixer=m, d_ff=d_ff) for m in parse_architecture(architecture))
        return cls(blocks=blocks, **fields)
