"""Softmax attention in which every token sees the keys of a sparse pattern only."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from mixers.base import TokenMixer, init_linear, zero_padding
from mixers.builtin.attention import AttentionConfig, rotate, rotation
from mixers.config import MixerConfig, MixerTraits
from mixers.patterns import TWO_PARTS, Part, Pattern, connection_count, visible
from mixers.windowed import BLOCK, window_attention

WIDTHS: dict[Pattern, int] = {"star": 1}
OTHER_WIDTH = 8


class SparseConfig(MixerConfig):
    """Config of `sparse_attention`.

    Attributes:
        pattern: "sliding_window": the neighbours; "strided": neighbours, and every `width`-th
            token; "fixed": the own block, and the last token of every block; "star": neighbours and
            the first token, which sees all; "random": drawn from `seed`.
        width: Neighbours on each side, stride, size of a block, or tokens drawn; by default 8, and
            1 for "star".
        combination: For "strided" and "fixed", which have two parts: "union" of both in every head
            (the default), "multihead" (half of the heads each), or "first" or "second" alone, to
            alternate between layers.
        seed: Of the draw; "random" only, by default 0.
        n_heads: As in `attention`.
        rotary: As in `attention`.
    """

    kind: Literal["sparse_attention"] = "sparse_attention"
    pattern: Pattern = "sliding_window"
    width: Annotated[int, Field(ge=1)] | None = None
    combination: Literal["union", "multihead", "first", "second"] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    n_heads: Annotated[int, Field(ge=1)] | None = None
    rotary: bool = False

    @property
    def size(self) -> int:
        """The width, or its default."""
        return self.width or WIDTHS.get(self.pattern, OTHER_WIDTH)

    @property
    def parts(self) -> tuple[tuple[Part, ...], ...]:
        """The parts each group of heads sees; heads are split evenly among the groups."""
        if self.pattern not in TWO_PARTS or self.combination == "first":
            return (("first",),)
        if self.combination == "second":
            return (("second",),)
        if self.combination == "multihead":
            return (("first",), ("second",))
        return (("first", "second"),)

    def resolve(self, *, d_model: int, max_seq_len: int) -> Self:
        """Fill in what is left open."""
        changes: dict[str, object] = {"width": self.size}
        if self.pattern in TWO_PARTS:
            changes["combination"] = self.combination or "union"
        if self.pattern == "random":
            changes["seed"] = self.seed or 0
        if self.n_heads is None and d_model % 16 == 0:
            changes["n_heads"] = d_model // (16 if d_model % 32 else 32)
        return self.model_copy(update=changes)

    def conflicts(self, *, d_model: int, max_seq_len: int) -> Iterator[tuple[str, str]]:
        """Heads as in `attention`; no field that the pattern would not read."""
        heads = AttentionConfig(n_heads=self.n_heads, rotary=self.rotary)
        yield from heads.conflicts(d_model=d_model, max_seq_len=max_seq_len)
        if self.combination is not None and self.pattern not in TWO_PARTS:
            yield "combination", f"pattern {self.pattern} has one part only; leave it out"
        if self.combination == "multihead" and self.n_heads == 1:
            yield "combination", "multihead needs n_heads of at least 2"
        if self.seed is not None and self.pattern != "random":
            yield "seed", f"pattern {self.pattern} draws nothing; leave it out"


class SparseAttention(TokenMixer[SparseConfig]):
    """Attention whose softmax runs over a set A_j of keys (Yun et al. 2020, arXiv 2006.04862).

    Weights and scores are those of `attention`. A_j is given by a pattern (see `SparseConfig`) and
    holds the token itself; of it, real tokens count (up to j with `causal`). Places count from the
    first real token.

    Shapes: x (B, N, D); heads (B, H, N, E) with E = D / H; `qkv` (3 D, D), `out` (D, D), with
    biases. The sliding window works on blocks of 64 queries with the keys they see, O(N width);
    every other pattern is dense attention under a mask, O(N^2) in time. FLOPs count the pairs of
    the pattern; `reference` takes one token at a time.
    """

    config_type: ClassVar[type[MixerConfig]] = SparseConfig
    symbol: ClassVar[str] = "P"

    def __init__(
        self, config: SparseConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        assert self.config.n_heads is not None
        self.n_heads = self.config.n_heads
        self.qkv = init_linear(nn.Linear(d_model, 3 * d_model))
        self.out = init_linear(nn.Linear(d_model, d_model))

    @classmethod
    def traits(cls, config: SparseConfig) -> MixerTraits:
        """Return the claims."""
        reach: int | Literal["global"] = "global"
        if config.pattern == "sliding_window":
            reach = config.size
        elif config.parts == (("first",),) and config.pattern in TWO_PARTS:
            reach = config.size - (config.pattern == "fixed")
        per_token = reach != "global" or config.pattern in ("star", "random")
        return MixerTraits(
            reach=reach,
            linear=False,
            position_aware=True,
            causal=True,
            fixed_length=False,
            cost="n" if per_token else "n^2",
            source="Yun et al. 2020 (arXiv 2006.04862), sparse attention and its patterns",
        )

    @classmethod
    def connections(cls, config: SparseConfig, *, seq_len: int, causal: bool = False) -> Tensor:
        """Return what the heads see, all together."""
        mask = torch.ones(1, seq_len, dtype=torch.bool)
        return seen_by_heads(config, mask, causal=causal)[0].any(0)

    @classmethod
    def flops(cls, config: SparseConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of four projections, and of scores and values of the pattern's pairs."""
        groups = config.parts
        pairs = sum(
            connection_count(config.pattern, part, width=config.size, seq_len=seq_len)
            for group in groups
            for part in group
        )
        return 8 * seq_len * d_model**2 + 4 * d_model * min(pairs // len(groups), seq_len**2)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update."""
        query, key, value = self.heads(zero_padding(x, mask))
        reach = self.config.size
        if self.config.pattern == "sliding_window" and x.shape[1] > BLOCK + 2 * reach:
            after = 0 if self.causal else reach
            mixed = window_attention(query, key, value, mask, before=reach, after=after)
        else:
            allowed = self.allowed(x, mask)
            mixed = scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape_as(x))
        return out

    def reference(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update, one group of heads, one row and one query at a time."""
        query, key, value = self.heads(zero_padding(x, mask))
        # Without a mask the sets are counted on the CPU, so FLOPs can be counted without any data.
        whole = torch.ones(x.shape[:2], dtype=torch.bool, device="cpu")
        real = whole if mask is None else mask
        allowed = seen_by_heads(self.config, real, causal=self.causal)
        mixed = []
        for row, sets in enumerate(allowed):
            groups = zip(*(self.split(part[row]) for part in (query, key, value)), strict=True)
            for seen, (q, k, v) in zip(sets, groups, strict=True):
                for token, keys in enumerate(seen):
                    some = keys.nonzero()[:, 0].to(x.device)
                    scores = q[:, None, token] @ k[:, some].mT * q.shape[-1] ** -0.5
                    mixed.append((scores.softmax(-1) @ v[:, some])[:, 0].flatten())
        by_group = torch.cat(mixed).view(len(x), len(self.config.parts), x.shape[1], -1)
        out: Tensor = self.out(by_group.transpose(1, 2).flatten(2))
        return out

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, each (B, H, N, E)."""
        batch, seq_len, _ = x.shape
        split = self.qkv(x).view(batch, seq_len, 3, self.n_heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        if self.config.rotary:
            turn = rotation(seq_len, query.shape[-1], like=x)
            query, key = rotate(query, turn), rotate(key, turn)
        return query, key, value

    def split(self, heads: Tensor) -> tuple[Tensor, ...]:
        """Return the groups of heads (H, ...), as many as the config has."""
        return heads.tensor_split(len(self.config.parts))

    def allowed(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the mask of dense attention, (B or 1, H or 1, N, N) bool."""
        real = x.new_ones((1, x.shape[1]), dtype=torch.bool) if mask is None else mask
        seen = seen_by_heads(self.config, real, causal=self.causal)
        if seen.shape[1] == 1:
            return seen
        sizes = [len(group) for group in self.split(torch.empty(self.n_heads))]
        return seen.repeat_interleave(torch.tensor(sizes, device=seen.device), dim=1)


def seen_by_heads(config: SparseConfig, mask: Tensor, *, causal: bool) -> Tensor:
    """Return the sets of keys of each group of heads, (B, groups, N, N) bool, for mask (B, N)."""
    seed = config.seed or 0
    groups = [
        [
            visible(config.pattern, part, mask, width=config.size, seed=seed, causal=causal)
            for part in group
        ]
        for group in config.parts
    ]
    return torch.stack([torch.stack(parts).any(0) for parts in groups], dim=1)
