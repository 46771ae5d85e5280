"""How far information travels in a stack: who has seen whom after which layer."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mixers.chains import Chain, find_chain
from mixers.errors import MixerError
from mixers.registry import mixer_registry
from mixers.spec import EncoderSpec

LONGEST = 512
"""Tokens looked at by default in a longer encoder."""
MOST = 8192
"""Tokens that can be looked at: tables of so many squared take a gigabyte."""


@dataclass(frozen=True, eq=False)
class Route:
    """How tokens reach each other in a stack.

    The three conditions are those of Yun et al. 2020 (arXiv 2006.04862, assumption 1), sufficient
    for a stack of sparse attention with feed-forward layers, repeated as often as needed, to
    approximate every continuous function of sequences. For other mixers the third is necessary
    only: a token that was never seen cannot matter.

    Attributes:
        notation: The mixers.
        code: One character per layer.
        n_tokens: Tokens looked at.
        causal: Whether the encoder is causal; then only earlier tokens and itself count as wanted.
        blind_layers: Layers (from 0) in which some token does not see itself: condition 1 asks for
            none.
        chain: Condition 2: an order of all tokens in which each is seen by the next one, somewhere
            in the stack.
        full_after: Condition 3: after how many layers every token has seen every other, the stack
            being repeated as often as needed (or not at all, if asked so); None if never.
        until: (N, N) int, entry (j, i): after how many layers output j has seen token i, counted as
            `full_after`; 0 for itself, -1 if never or not wanted.
        n_layers: Layers of the stack.
    """

    notation: str
    code: str
    n_tokens: int
    causal: bool
    n_layers: int
    blind_layers: tuple[int, ...]
    chain: Chain
    full_after: int | None
    until: Tensor

    @property
    def layers_until(self) -> tuple[tuple[int | None, ...], ...]:
        """`until` as plain numbers, None instead of -1."""
        return tuple(
            tuple(cell if cell >= 0 else None for cell in row) for row in self.until.tolist()
        )

    @property
    def conditions(self) -> dict[str, bool | None]:
        """Whether each condition holds; None where it is not known."""
        return {
            "self_loop": not self.blind_layers,
            "chain": {"found": True, "impossible": False, "not found": None}[self.chain.state],
            "all_reach_all": self.full_after is not None,
        }

    @property
    def n_pairs(self) -> int:
        """Pairs (output, token) that could be: all, or those that look back."""
        n = self.n_tokens
        return n * (n + 1) // 2 if self.causal else n * n

    def seen_after(self, layers: int) -> int:
        """Return how many pairs have met after that many layers."""
        return int(((self.until >= 0) & (self.until <= layers)).sum())

    def unseen(self, *, within: int | None = None) -> list[tuple[int, int]]:
        """Return the pairs (output, token) that never meet, or not within that many layers."""
        missing = self.until < 0
        if within is not None:
            missing |= self.until > within
        if self.causal:
            missing = missing.tril()
        return [(output, token) for output, token in missing.nonzero().tolist()]


def route(spec: EncoderSpec, *, n_tokens: int | None = None, repeated: bool = True) -> Route:
    """Follow every token through a stack by what its mixers declare to see.

    Costs a product of N x N matrices per layer; builds and trains nothing.

    Args:
        spec: The encoder.
        n_tokens: Tokens to look at; by default `max_seq_len`, at most 512.
        repeated: Go on through the stack again until nothing new is seen; without it, what is not
            seen in one pass counts as never.

    Raises:
        MixerError: No token, more than 8192, or more than a mixer of the stack is bound to.
    """
    tokens = min(spec.max_seq_len, LONGEST) if n_tokens is None else n_tokens
    if not 1 <= tokens <= MOST:
        raise MixerError(f"n_tokens must be from 1 to {MOST}, not {tokens}")
    layers = [layer_connections(spec, layer, tokens) for layer in range(spec.n_layers)]
    until = arrival(layers, most=None if repeated else len(layers))
    wanted = torch.ones(tokens, tokens, dtype=torch.bool)
    wanted = wanted.tril() if spec.causal else wanted
    is_full = bool((until[wanted] >= 0).all())
    return Route(
        notation=spec.notation,
        code=spec.code,
        n_tokens=tokens,
        causal=spec.causal,
        n_layers=spec.n_layers,
        blind_layers=tuple(i for i, seen in enumerate(layers) if not bool(seen.diagonal().all())),
        chain=find_chain(torch.stack(layers).any(0)),
        full_after=int(until.max()) if is_full else None,
        until=until,
    )


def layer_connections(spec: EncoderSpec, layer: int, tokens: int) -> Tensor:
    """Return what one layer's mixer declares to see, (N, N) bool: row = output, column = token."""
    config = spec.blocks[layer].mixer
    mixer_type = mixer_registry.load(config.kind)
    if mixer_type.traits(config).fixed_length and tokens > spec.max_seq_len:
        raise MixerError(
            f"layer {layer}: {config.kind} is bound to max_seq_len {spec.max_seq_len}, "
            f"got {tokens} tokens"
        )
    return mixer_type.declared_connections(config, seq_len=tokens, causal=spec.causal)


def arrival(layers: list[Tensor], *, most: int | None = None) -> Tensor:
    """Return after how many layers each output has seen each token, (N, N); -1 = never.

    The layers are repeated until a whole round of them changes nothing, or `most` are through. The
    residual keeps every token at its own place.
    """
    tokens = len(layers[0])
    own = torch.eye(tokens)
    seen = own.clone()
    until = own.long() - 1
    steps = [torch.maximum(layer.float(), own) for layer in layers]
    idle = depth = 0
    while idle < len(steps) and depth != most and bool((seen == 0).any()):
        seen = (steps[depth % len(steps)] @ seen > 0).float()
        depth += 1
        fresh = (seen > 0) & (until < 0)
        until[fresh] = depth
        idle = 0 if bool(fresh.any()) else idle + 1
    return until
