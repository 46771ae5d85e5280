"""Softmax dot-product self-attention, optionally with rotary positions."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from mixers.base import TokenMixer, init_linear, zero_padding
from mixers.config import MixerConfig, MixerTraits

LONG = 1024
"""Tokens from which on a CPU reads copied heads sooner than heads that lie 3 D apart."""


class AttentionConfig(MixerConfig):
    """Config of `attention`.

    Attributes:
        n_heads: Heads; by default of size 32, or of size 16 where 32 does not divide `d_model`.
        rotary: Turn queries and keys by their positions (Su et al. 2021), which makes the layer
            aware of relative positions.
    """

    kind: Literal["attention"] = "attention"
    n_heads: Annotated[int, Field(ge=1)] | None = None
    rotary: bool = False

    def resolve(self, *, d_model: int, max_seq_len: int) -> Self:
        """Fill in `n_heads`."""
        if self.n_heads is not None or d_model % 16:
            return self
        return self.model_copy(update={"n_heads": d_model // (16 if d_model % 32 else 32)})

    def conflicts(self, *, d_model: int, max_seq_len: int) -> Iterator[tuple[str, str]]:
        """Heads must divide the width; rotary heads must be even."""
        if self.n_heads is None:
            yield "n_heads", f"d_model {d_model} has no default; give an n_heads that divides it"
        elif d_model % self.n_heads:
            yield "n_heads", f"{self.n_heads} must divide d_model {d_model}"
        elif self.rotary and (d_model // self.n_heads) % 2:
            size = d_model // self.n_heads
            yield "rotary", f"heads of size {size} are odd; choose n_heads so that it is even"


class Attention(TokenMixer[AttentionConfig]):
    """Sum over heads of W_O W_V X softmax[(W_K X)^T (W_Q X)] (Yun et al. 2020, equation 1).

    Scores are divided by sqrt(E) and all four projections have biases, as in Vaswani et al. 2017
    and BERT. The softmax runs over keys: down the paper's columns, along our last axis.

    Shapes: x (B, N, D); heads (B, H, N, E) with E = D / H; `qkv` holds W_Q, W_K, W_V stacked
    (3 D, D), `out` holds W_O (D, D).
    """

    config_type: ClassVar[type[MixerConfig]] = AttentionConfig
    symbol: ClassVar[str] = "A"

    def __init__(
        self, config: AttentionConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        assert self.config.n_heads is not None
        self.n_heads = self.config.n_heads
        self.qkv = init_linear(nn.Linear(d_model, 3 * d_model))
        self.out = init_linear(nn.Linear(d_model, d_model))

    @classmethod
    def traits(cls, config: AttentionConfig) -> MixerTraits:
        """Return the claims."""
        rotary = "; rotary positions of Su et al. 2021 (arXiv 2104.09864)" if config.rotary else ""
        return MixerTraits(
            reach="global",
            linear=False,
            position_aware=config.rotary,
            causal=True,
            fixed_length=False,
            cost="n^2",
            source=f"Yun et al. 2020 (arXiv 1912.10077), equation (1){rotary}",
        )

    @classmethod
    def flops(cls, config: AttentionConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of four projections, the scores and their product with the values."""
        return 8 * seq_len * d_model**2 + 4 * seq_len**2 * d_model

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update."""
        x = zero_padding(x, mask)
        batch, seq_len, d_model = x.shape
        heads = self.qkv(x).view(batch, seq_len, 3, self.n_heads, -1)
        heads = heads.permute(2, 0, 3, 1, 4)
        if x.device.type == "cpu" and seq_len >= LONG:
            heads = heads.contiguous()
        query, key, value = heads.unbind(0)
        if self.config.rotary:
            turn = rotation(seq_len, query.shape[-1], like=x)
            query, key = rotate(query, turn), rotate(key, turn)
        allowed = None if mask is None else self.allowed_keys(mask)
        mixed = scaled_dot_product_attention(
            query, key, value, attn_mask=allowed, is_causal=self.causal and allowed is None
        )
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, seq_len, d_model))
        return out

    def allowed_keys(self, mask: Tensor) -> Tensor:
        """Return the keys each query may see, (B, 1, 1 or N, N) bool, never none at all.

        Only padded queries are given something to look at that they would not otherwise have (all
        zeros in an empty row, themselves under a causal mask), so no softmax runs over nothing.
        """
        keys = mask[:, None, None, :]
        if not self.causal:
            return keys | ~mask.any(1)[:, None, None, None]
        back = torch.ones(mask.shape[1], mask.shape[1], dtype=torch.bool, device=mask.device).tril()
        return (keys & back) | torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)


def rotation(seq_len: int, d_head: int, *, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return cos and sin of position * 10000^(-2i/E), each (N, E / 2), in at least float32."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    pairs = torch.arange(0, d_head, 2, device=like.device, dtype=dtype)
    places = torch.arange(seq_len, device=like.device, dtype=dtype)
    angles = torch.outer(places, 10000.0 ** (-pairs / d_head))
    return angles.cos(), angles.sin()


def rotate(heads: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Turn the pairs (i, i + E/2) of every head by the angle of their position."""
    cos, sin = turn
    first, second = heads.to(cos.dtype).chunk(2, dim=-1)
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    return turned.to(heads.dtype)
