"""What is measured and how differences are judged.

All checks measure in float64 with parameters moved away from their initial values: a bias that
starts at zero, or an output that does, would hide faults.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mixers.base import TokenMixer
from mixers.config import MixerConfig
from mixers.errors import ConformanceError

TOLERANCE = 1e-8
"""Relative to the size of the output: far above float64 rounding, far below any real influence."""


@dataclass(frozen=True)
class Subject:
    """One config of one mixer class, at the sizes of the measurement.

    Attributes:
        mixer_type: The class.
        config: The config.
        d_model: Features per token.
        seq_len: Tokens of the inputs.
        max_seq_len: What the mixer is built for unless a check asks for more; by default twice
            `seq_len`.
    """

    mixer_type: type[TokenMixer[Any]]
    config: MixerConfig
    d_model: int
    seq_len: int
    max_seq_len: int | None = None

    @property
    def kind(self) -> str:
        """The mixer's kind."""
        return self.config.kind

    @property
    def label(self) -> str:
        """Kind and the fields that differ from their defaults."""
        changed = self.config.model_dump(exclude_defaults=True, exclude={"kind"})
        return ",".join([self.kind, *(f"{name}={value}" for name, value in changed.items())])

    @property
    def longest(self) -> int:
        """What the mixer is built for unless a check asks for more."""
        return self.max_seq_len or 2 * self.seq_len

    def build(
        self, *, causal: bool = False, seed: int = 0, max_seq_len: int | None = None
    ) -> TokenMixer[Any]:
        """Return the mixer in float64 and eval mode, its parameters moved at random."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            mixer = self.mixer_type(
                self.config,
                d_model=self.d_model,
                max_seq_len=max_seq_len or self.longest,
                causal=causal,
            )
            mixer = mixer.double().eval()
            with torch.no_grad():
                for parameter in mixer.parameters():
                    parameter.add_(0.2 * torch.randn_like(parameter))
        return mixer

    def tokens(self, batch: int, seq_len: int | None = None, seed: int = 1) -> Tensor:
        """Return random input (batch, seq_len, d_model)."""
        generator = torch.Generator().manual_seed(seed)
        shape = (batch, seq_len or self.seq_len, self.d_model)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def fail(self, claim: str, measured: str, counterexample: str) -> ConformanceError:
        """Return the error to raise."""
        return ConformanceError(self.label, claim, measured, counterexample)


CheckFunction = Callable[[Subject], None]


def causal_modes(subject: Subject) -> list[bool]:
    """Return the values of `causal` that the mixer can be built with."""
    return [False, True] if subject.mixer_type.traits(subject.config).causal else [False]


def differ(left: Tensor, right: Tensor) -> Tensor:
    """Return where two outputs differ beyond rounding, per token (B, N) bool; NaN differs."""
    scale = 1.0 + left.detach().nan_to_num().abs().max()
    return ~((left - right).abs().amax(-1) <= TOLERANCE * scale)


def gap(left: Tensor, right: Tensor) -> str:
    """Return the largest difference in words."""
    return f"largest difference {float((left - right).detach().abs().max()):.3g}"


def influence(
    mixer: nn.Module,
    x: Tensor,
    mask: Tensor | None = None,
    *,
    tokens: Sequence[int] | None = None,
) -> Tensor:
    """Return which outputs move with which tokens, (N, N) bool: entry (j, i) is output j, token i.

    Every token is replaced several times, by tokens of several sizes, since a mixer that selects
    ignores most of them.

    Args:
        mixer: The mixer, in eval mode.
        x: One input, (1, N, D).
        mask: (1, N) bool, True = real token; padded outputs count as not moving.
        tokens: The tokens to replace, one column each; by default all.
    """
    places = torch.arange(x.shape[1]) if tokens is None else torch.tensor(tokens)
    generator = torch.Generator().manual_seed(4)
    moved = torch.zeros(x.shape[1], len(places), dtype=torch.bool)
    with torch.no_grad():
        base = mixer(x, mask)
        many = None if mask is None else mask.expand(len(places), -1)
        for size in (1.0, 1.0, 4.0, 4.0, 16.0):
            variants = x.repeat(len(places), 1, 1)
            fresh = torch.randn(len(places), x.shape[2], generator=generator, dtype=torch.float64)
            variants[torch.arange(len(places)), places] = (size * fresh).to(x.device, x.dtype)
            moved |= differ(base.expand_as(variants), mixer(variants, many)).T.cpu()
    if mask is not None:
        moved &= mask.T.cpu()
    return moved
