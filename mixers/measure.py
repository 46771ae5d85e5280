"""A mixer measured beside attention: sizes at the start, errors, and who moves whom by how much."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mixers.catalogue import build, mixer_config
from mixers.config import MixerConfig
from mixers.errors import MixerError
from mixers.testing import checks

USUAL = (1 / 3, 3.0)
"""Ratios to attention outside of which a mixer may need another learning rate or scale."""
SEEDS = 3
DIRECTIONS = 4
"""Random directions, the same for every output, from which influence is estimated."""


@dataclass(frozen=True)
class Sizes:
    """Root mean squares of a mixer as initialised, on tokens with entries N(0, 1).

    Attributes:
        update: Of the update.
        gradient: Of the gradient of the input where that of the update has entries N(0, 1).
    """

    update: float
    gradient: float


@dataclass(frozen=True)
class Card:
    """What was measured.

    Attributes:
        kind: The mixer.
        d_model: Features of the test.
        seq_len: Tokens of the test.
        holds: {check: None, or why it does not hold}.
        parameters: Trainable weights.
        flops: FLOPs of one forward of one sequence, by its formula.
        attention_flops: Those of attention at the same sizes.
        errors: {number format: largest error against float64, relative to the largest output}.
        sizes: At initialisation.
        attention: Those of attention.
        influence: How strongly output j depends on token i, (N, N): root mean square of the
            derivatives at initialisation.
    """

    kind: str
    d_model: int
    seq_len: int
    holds: dict[str, str | None]
    parameters: int
    flops: int
    attention_flops: int
    errors: dict[str, float]
    sizes: Sizes
    attention: Sizes
    influence: tuple[tuple[float, ...], ...]

    @property
    def ratios(self) -> dict[str, float]:
        """Sizes relative to attention's."""
        return {
            "update": self.sizes.update / self.attention.update,
            "gradient": self.sizes.gradient / self.attention.gradient,
        }

    @property
    def warnings(self) -> list[str]:
        """One line per ratio that is out of the usual; none for a mixer that does nothing."""
        low, high = USUAL
        return [
            f"{name} at initialisation is {times(ratio)} times attention's (usual: 1/3 to 3): "
            "under one learning rate this mixer starts at another scale"
            for name, ratio in self.ratios.items()
            if ratio and not low <= ratio <= high
        ]


def times(ratio: float) -> str:
    """Write a ratio with two digits, large ones without an exponent."""
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:.0f}"


def measure(
    config: MixerConfig | dict[str, Any] | str, *, d_model: int = 64, seq_len: int = 64
) -> Card:
    """Measure one config of a mixer; takes a few seconds.

    Args:
        config: `{"kind": ...}`, a bare name, or a config.
        d_model: Features; the conformance checks choose their own.
        seq_len: Tokens.

    Raises:
        MixerError: The mixer is unknown or its config does not fit the sizes.
    """
    valid = mixer_config(config)
    mixer = build(valid, d_model=d_model, max_seq_len=seq_len)
    attention = build("attention", d_model=d_model, max_seq_len=seq_len)
    sizes = {"d_model": d_model, "seq_len": seq_len}
    return Card(
        kind=valid.kind,
        d_model=d_model,
        seq_len=seq_len,
        holds={check.name: refuted(check) for check in checks(valid.kind, [valid])},
        parameters=sum(p.numel() for p in mixer.parameters() if p.requires_grad),
        flops=mixer.flops(mixer.config, **sizes),
        attention_flops=attention.flops(attention.config, **sizes),
        errors=rounding_errors(valid, d_model, seq_len),
        sizes=sizes_at_start(valid, d_model, seq_len),
        attention=sizes_at_start(attention.config, d_model, seq_len),
        influence=influence_strength(valid, d_model, min(seq_len, 64)),
    )


def refuted(check: Any) -> str | None:
    """Return why a check does not hold, in one line, or None."""
    try:
        check()
    except MixerError as error:
        return " ".join(str(error).split())
    return None


def seeded(config: MixerConfig, d_model: int, seq_len: int, seed: int) -> tuple[nn.Module, Tensor]:
    """Return a mixer as initialised and an input of normal numbers, (2, N, D)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mixer = build(config, d_model=d_model, max_seq_len=seq_len).eval()
        return mixer, torch.randn(2, seq_len, d_model)


def sizes_at_start(config: MixerConfig, d_model: int, seq_len: int) -> Sizes:
    """Return the sizes of update and gradient, over several seeds."""
    updates, gradients = [], []
    for seed in range(SEEDS):
        mixer, x = seeded(config, d_model, seq_len, seed)
        out = mixer(x.requires_grad_())
        updates.append(out.detach())
        if out.requires_grad:
            generator = torch.Generator().manual_seed(seed)
            weight = torch.randn(out.shape, generator=generator)
            (gradient,) = torch.autograd.grad((out * weight).sum(), x)
            gradients.append(gradient)
    return Sizes(rms(updates), rms(gradients))


def rms(tensors: list[Tensor]) -> float:
    """Return the root mean square of all entries; 0 for none."""
    return float(torch.stack(tensors).square().mean().sqrt()) if tensors else 0.0


def rounding_errors(config: MixerConfig, d_model: int, seq_len: int) -> dict[str, float]:
    """Return each number format's largest error against float64, relative to the largest value.

    Input and weights are those of float32, so what is seen is the computation's own rounding (and,
    in the half formats, that of the input and the weights).
    """
    mixer, x = seeded(config, d_model, seq_len, seed=0)
    with torch.no_grad():
        outputs = {
            dtype: mixer.to(dtype)(x.to(dtype)).double()
            for dtype in (torch.float32, torch.bfloat16)
        }
        mixer, _ = seeded(config, d_model, seq_len, seed=0)
        exact = mixer.double()(x.double())
    largest = float(exact.abs().max()) or 1.0
    return {
        str(dtype).removeprefix("torch."): float((out - exact).abs().max()) / largest
        for dtype, out in outputs.items()
    }


def influence_strength(
    config: MixerConfig, d_model: int, seq_len: int
) -> tuple[tuple[float, ...], ...]:
    """Return the root mean square of d output_j / d token_i, from random directions, (N, N)."""
    mixer, x = seeded(config, d_model, seq_len, seed=0)
    x = x[:1].double().requires_grad_()
    out = mixer.double()(x)
    if not out.requires_grad:
        return tuple(tuple(0.0 for _ in range(seq_len)) for _ in range(seq_len))
    generator = torch.Generator().manual_seed(1)
    ways = torch.randn(DIRECTIONS, d_model, generator=generator, dtype=torch.float64)
    rows = []
    for output in range(seq_len):
        total = torch.zeros(seq_len, dtype=torch.float64)
        for way in ways:
            (gradient,) = torch.autograd.grad(
                out[0, output] @ way, x, retain_graph=True, materialize_grads=True
            )
            total += gradient[0].square().mean(-1)
        rows.append(tuple((total / DIRECTIONS).sqrt().tolist()))
    return tuple(rows)
