"""EncoderSpec -> Encoder; the only home of residuals, norms and dropout."""

import math

import torch
from torch import Tensor, nn

from mixers.activation import PiecewiseLinear
from mixers.base import TokenMixer, init_linear, zero_padding
from mixers.config import MixerConfig
from mixers.errors import MixerError
from mixers.registry import mixer_registry
from mixers.spec import BlockSpec, EncoderSpec


class PiecewiseActivation(nn.Module):
    """Applies a `PiecewiseLinear` entrywise."""

    def __init__(self, spec: PiecewiseLinear) -> None:
        super().__init__()
        self.spec = spec

    def forward(self, x: Tensor) -> Tensor:
        """Return the value of the piece that each entry falls into."""
        value = self.spec.slopes[0] * x + self.spec.intercepts[0]
        later = zip(
            self.spec.breakpoints, self.spec.slopes[1:], self.spec.intercepts[1:], strict=True
        )
        for start, slope, intercept in later:
            value = torch.where(x >= start, slope * x + intercept, value)
        return value


def activation_of(block: BlockSpec) -> nn.Module:
    """Return the module of a block's activation."""
    if isinstance(block.activation, PiecewiseLinear):
        return PiecewiseActivation(block.activation)
    return nn.GELU() if block.activation == "gelu" else nn.ReLU()


class FeedForward(nn.Module):
    """The token-wise layer W_2 act(W_1 x + b_1) + b_2 (Yun et al. 2020, equation 2)."""

    def __init__(self, block: BlockSpec, d_model: int) -> None:
        super().__init__()
        self.wide = init_linear(nn.Linear(d_model, block.d_ff, bias=block.bias))
        self.activation = activation_of(block)
        self.narrow = init_linear(nn.Linear(block.d_ff, d_model, bias=block.bias))

    def forward(self, x: Tensor) -> Tensor:
        """Return the update, (B, N, D)."""
        out: Tensor = self.narrow(self.activation(self.wide(x)))
        return out


class Block(nn.Module):
    """A token mixer and a feed-forward layer, each with its residual, norm and dropout.

    Attributes:
        mixer: The token mixer.
        feed_forward: The feed-forward layer, or None where `d_ff` is 0.
    """

    def __init__(self, spec: EncoderSpec, block: BlockSpec) -> None:
        super().__init__()
        self.norm = spec.norm
        self.mixer = build_mixer(
            block.mixer,
            d_model=spec.d_model,
            max_seq_len=spec.max_seq_len,
            causal=spec.causal,
        )
        self.mixer_norm = norm_of(spec)
        self.feed_forward = FeedForward(block, spec.d_model) if block.d_ff else None
        self.feed_forward_norm = norm_of(spec) if block.d_ff else None
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the new hidden states, (B, N, D)."""
        if self.norm == "pre":
            x = x + self.dropout(self.mixer(self.mixer_norm(x), mask))
            if self.feed_forward is not None and self.feed_forward_norm is not None:
                x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
            return x
        x = self.mixer_norm(x + self.dropout(self.mixer(x, mask)))
        if self.feed_forward is not None and self.feed_forward_norm is not None:
            x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return x


class Encoder(nn.Module):
    """Embeddings, blocks and, for `norm="pre"`, a last LayerNorm.

    Weights start normal with mean 0: projections with variance 0.25 / fan-in, token embeddings with
    0.25 / d_model (BERT's 0.02 at width 768, in proportion elsewhere); biases 0, norms 1. Token
    embeddings then enter times sqrt(d_model), so that a token's own vector is as large as the
    updates of the first layers; smaller, it drowns in them, and short runs spend their steps on a
    plateau. For the same reason positions and segments start ten times smaller than what enters
    for a token. The weights depend on torch's seed alone.

    Args:
        spec: The validated description.

    Attributes:
        spec: The spec.
        token_embedding: Its `weight` (vocab_size, D) may be tied to an output head.
        blocks: The blocks; layer i's mixer is `blocks[i].mixer`.
    """

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.token_scale = spec.d_model**0.5 if spec.scale_embeddings else 1.0
        self.token_embedding = embedding(spec.vocab_size, spec.d_model)
        small = 0.1 * self.token_scale
        self.position_embedding = (
            embedding(spec.n_positions or spec.max_seq_len, spec.d_model, scale=small)
            if spec.positions == "learned"
            else None
        )
        self.segment_embedding = (
            embedding(spec.n_segments, spec.d_model, scale=small) if spec.n_segments else None
        )
        self.embedding_norm = (
            nn.LayerNorm(spec.d_model, eps=spec.norm_eps) if spec.embedding_norm else nn.Identity()
        )
        self.dropout = nn.Dropout(spec.dropout)
        self.blocks = nn.ModuleList(Block(spec, block) for block in spec.blocks)
        self.final_norm = norm_of(spec) if spec.norm == "pre" else nn.Identity()

    def forward(
        self, inputs: Tensor, mask: Tensor | None = None, segment_ids: Tensor | None = None
    ) -> Tensor:
        """Return hidden states, (B, N, D).

        Args:
            inputs: Token ids (B, N), or vectors (B, N, D) that enter in place of the (scaled) token
                embeddings.
            mask: (B, N) bool, True = real token; None = all real.
            segment_ids: (B, N) ids below `n_segments`; None = all 0.

        Raises:
            MixerError: Wrong shapes or types, too many tokens, or segments the spec does not have.
        """
        x = self.embed(inputs, segment_ids)
        if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:2]):
            raise MixerError(
                f"mask must be bool of shape {tuple(x.shape[:2])} with True for real tokens, "
                f"got {mask.dtype} of shape {tuple(mask.shape)}"
            )
        # Cleared once here, padding stays finite through norms and feed-forward layers.
        x = zero_padding(x, mask)
        for block in self.blocks:
            x = block(x, mask)
        out: Tensor = self.final_norm(x)
        return out

    def embed(self, inputs: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        """Return what enters the first block, (B, N, D)."""
        spec = self.spec
        x = inputs
        if not inputs.is_floating_point():
            x = self.token_embedding(inputs) * self.token_scale
        if x.dim() != 3 or x.shape[-1] != spec.d_model:
            raise MixerError(
                f"inputs must be ids (B, N) or embeddings (B, N, {spec.d_model}), "
                f"got shape {tuple(inputs.shape)}"
            )
        seq_len = x.shape[1]
        if self.position_embedding is not None:
            if seq_len > spec.max_seq_len:
                raise MixerError(
                    f"learned positions end at max_seq_len {spec.max_seq_len}, got {seq_len} "
                    "tokens; cut the input or use a spec with a larger max_seq_len"
                )
            x = x + self.position_embedding.weight[:seq_len]
        elif spec.positions == "sinusoidal":
            x = x + sinusoids(seq_len, spec.d_model, like=x)
        if self.segment_embedding is not None:
            first = self.segment_embedding.weight[0]
            x = x + (first if segment_ids is None else self.segment_embedding(segment_ids))
        elif segment_ids is not None:
            raise MixerError("segment_ids given, but the spec has n_segments 0")
        out: Tensor = self.dropout(self.embedding_norm(x))
        return out


def build_mixer(
    config: MixerConfig, *, d_model: int, max_seq_len: int, causal: bool = False
) -> nn.Module:
    """Return the module of a validated config."""
    mixer_type: type[TokenMixer[MixerConfig]] = mixer_registry.load(config.kind)
    return mixer_type(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)


def norm_of(spec: EncoderSpec) -> nn.Module:
    """Return one of the encoder's LayerNorms, or nothing for `norm="none"`."""
    if spec.norm == "none":
        return nn.Identity()
    return nn.LayerNorm(spec.d_model, eps=spec.norm_eps)


def embedding(rows: int, d_model: int, *, scale: float = 1.0) -> nn.Embedding:
    """Return an initialised embedding table, `scale` times as large as that of the tokens."""
    table = nn.Embedding(rows, d_model)
    nn.init.normal_(table.weight, std=0.5 * scale * d_model**-0.5)
    return table


def sinusoids(seq_len: int, d_model: int, *, like: Tensor) -> Tensor:
    """Return the positions of Vaswani et al. 2017, (N, D): sines in even, cosines in odd places."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    even = torch.arange(0, d_model, 2, device=like.device, dtype=dtype)
    places = torch.arange(seq_len, device=like.device, dtype=dtype)
    angles = torch.outer(places, torch.exp(even * (-math.log(10000.0) / d_model)))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].to(like.dtype)
