"""Notation of whole stacks that follow a rule: which layer gets which mixer."""

from mixers.config import MixerConfig
from mixers.errors import MixerError
from mixers.notation import format_architecture, parse_architecture
from mixers.patterns import TWO_PARTS, Pattern


def modernbert(
    n_layers: int,
    *,
    every: int = 3,
    width: int = 64,
    rotary: bool = True,
    n_heads: int | None = None,
) -> str:
    """Return global attention in layers 0, `every`, 2 `every`, ... and a sliding window elsewhere.

    The order of Warner et al. 2024 (ModernBERT, arXiv 2412.13663), whose window of 128 tokens is
    64 to each side.

    Args:
        n_layers: Layers, at least 1.
        every: Distance of the global layers.
        width: Tokens a windowed layer sees on each side.
        rotary: Rotary positions in all layers.
        n_heads: Heads in all layers; by default what the mixers take for the width.

    Raises:
        MixerError: A number below 1.
    """
    at_least_one(n_layers=n_layers, every=every, width=width)
    common = f"rotary={str(rotary).lower()}"
    if n_heads is not None:
        at_least_one(n_heads=n_heads)
        common += f", n_heads={n_heads}"
    (everywhere,) = parse_architecture(f"attention({common})")
    (window,) = parse_architecture(f"sparse_attention(width={width}, {common})")
    return format_architecture(window if layer % every else everywhere for layer in range(n_layers))


def sequential(pattern: Pattern, n_layers: int, *, width: int = 8, rotary: bool = False) -> str:
    """Return layers that see the first and the second part of a sparse pattern in turn.

    The combination "sequential" of Yun et al. 2020 (arXiv 2006.04862).

    Args:
        pattern: "strided" or "fixed".
        n_layers: Layers, at least 1.
        width: The pattern's width.
        rotary: Rotary positions in all layers.

    Raises:
        MixerError: A pattern of one part, or a number below 1.
    """
    if pattern not in TWO_PARTS:
        raise MixerError(
            f"pattern {pattern!r} has one part only; those with two are {', '.join(TWO_PARTS)}"
        )
    at_least_one(n_layers=n_layers, width=width)
    layers: list[MixerConfig] = []
    for layer in range(n_layers):
        part = ("first", "second")[layer % 2]
        layers += parse_architecture(
            f"sparse_attention(pattern={pattern}, width={width}, combination={part}, "
            f"rotary={str(rotary).lower()})"
        )
    return format_architecture(layers)


def at_least_one(**numbers: int) -> None:
    """Refuse numbers below 1, by name."""
    for name, number in numbers.items():
        if number < 1:
            raise MixerError(f"{name} must be at least 1, not {number}")
