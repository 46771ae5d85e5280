"""The network of Theorem 2 or 3 as an ordinary encoder with given weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor, nn

from mixers.activation import PiecewiseLinear
from mixers.builtin.hardmax_shift import HardmaxShift, HardmaxShiftConfig
from mixers.builtin.identity import IdentityConfig
from mixers.model import Block, Encoder
from mixers.spec import BlockSpec, EncoderSpec
from mixers.theory.context import global_layer, shift_layers
from mixers.theory.layers import Number, ShiftLayer, SignLayer, TokenLayer
from mixers.theory.sizes import FLOAT64_BITS, Sizes, TheoryError, in_words
from mixers.theory.tokenwise import Target, quantizer_layers, value_layers

Layer = TokenLayer | ShiftLayer | SignLayer


@dataclass(frozen=True)
class Network:
    """The encoder of a theorem and where its parts are.

    Attributes:
        sizes: The sizes.
        encoder: `Encoder` in float64: vectors (B, n, d) to (B, n, d), in real units.
        parts: Blocks of each part, in the order "quantizer", "shifts", "global", "value".
        largest_id: The largest id that a window of the value mapping waits for, in units.
    """

    sizes: Sizes
    encoder: Encoder
    parts: dict[str, range]
    largest_id: int

    def run(self, x: Tensor, *names: str) -> Tensor:
        """Return x (B, n, d) after the blocks of these parts; the quantizer adds positions."""
        with torch.no_grad():
            if "quantizer" in names:
                x = self.encoder.embed(x)
            for name in names:
                for index in self.parts[name]:
                    x = self.encoder.blocks[index](x)
        return x


def build(sizes: Sizes, target: Target) -> Network:
    """Return the network whose output is the target on cubes (Theorem 2: with distinct columns).

    Raises:
        TheoryError: The sizes or the target do not fit float64, or there are too many layers; names
            the quantity.
    """
    sizes.require_network()
    values = value_layers(sizes, target)
    largest = largest_window(sizes, values)
    layers: dict[str, Sequence[Layer]] = {
        "quantizer": quantizer_layers(sizes),
        "shifts": shift_layers(sizes),
        "global": [global_layer(sizes)],
        "value": values,
    }
    everything = [layer for part in layers.values() for layer in part]
    spec = EncoderSpec(
        vocab_size=1,
        d_model=sizes.d,
        max_seq_len=sizes.n,
        norm="none",
        positions="learned" if sizes.theorem == 3 else "none",
        scale_embeddings=False,
        blocks=tuple(block_spec(sizes, layer) for layer in everything),
    )
    encoder = Encoder(spec).double().requires_grad_(False).eval()
    encoder.token_embedding.weight.zero_()
    if encoder.position_embedding is not None:
        places = torch.arange(sizes.n, dtype=torch.float64)
        encoder.position_embedding.weight.copy_(places[:, None].expand(-1, sizes.d))
    for block, layer in zip(encoder.blocks, everything, strict=True):
        assert isinstance(block, Block)
        fill(sizes, block, layer)
    return Network(sizes, encoder, ranges(layers), largest)


def largest_window(sizes: Sizes, values: Sequence[TokenLayer]) -> int:
    """Return the largest id, in units, that a layer of the value mapping waits for.

    Raises:
        TheoryError: A guard layer had to move the windows to where floats are further apart.
    """
    largest = max(sizes.largest_id, *(int(-layer.bias) for layer in values))
    if largest > 2**FLOAT64_BITS:
        raise TheoryError(
            f"values of the target reach u^T A >= t_l = {sizes.interval[0]} units of delta, so a "
            f"guard layer moves the ids to {in_words(largest)}, which needs "
            f"{largest.bit_length()} bits, float64 has {FLOAT64_BITS}; scale the target down"
        )
    return largest


def ranges(layers: dict[str, Sequence[Layer]]) -> dict[str, range]:
    """Return the block indices of each part."""
    parts, start = {}, 0
    for name, part in layers.items():
        parts[name] = range(start, start + len(part))
        start += len(part)
    return parts


def block_spec(sizes: Sizes, layer: Layer) -> BlockSpec:
    """Return the block of one layer: a mixer alone, or a feed-forward layer alone."""
    if isinstance(layer, TokenLayer):
        activation = PiecewiseLinear(
            breakpoints=tuple(float(t * sizes.delta) for t in layer.breakpoints),
            slopes=tuple(map(float, layer.slopes)),
            intercepts=tuple(float(b * sizes.delta) for b in layer.intercepts),
        )
        return BlockSpec(mixer=IdentityConfig(), d_ff=1, activation=activation)
    is_shift = isinstance(layer, ShiftLayer)
    mixer = HardmaxShiftConfig(n_heads=1, rule="shift" if is_shift else "sign")
    return BlockSpec(mixer=mixer, d_ff=0)


def fill(sizes: Sizes, block: Block, layer: Layer) -> None:
    """Write the weights of one layer into its block, in real units."""
    half = Fraction(1, 2)
    if isinstance(layer, TokenLayer):
        assert block.feed_forward is not None
        wide, narrow = block.feed_forward.wide, block.feed_forward.narrow
        set_to(wide.weight, layer.row)
        set_to(wide.bias, [layer.bias * sizes.delta])
        set_to(narrow.weight, layer.out)
        nn.init.zeros_(narrow.bias)
        return
    mixer = block.mixer
    assert isinstance(mixer, HardmaxShift)
    set_to(mixer.score, layer.u)
    set_to(mixer.direction, [layer.scale] + [0] * (sizes.d - 1))
    if isinstance(layer, ShiftLayer):
        set_to(mixer.lower, [(layer.level - half) * sizes.delta])
        set_to(mixer.upper, [(layer.level + half) * sizes.delta])
    else:
        set_to(mixer.lower, [0])


def set_to(weight: Tensor, values: Sequence[Number]) -> None:
    """Overwrite a weight with numbers, each rounded once to float64."""
    rounded = torch.tensor([float(value) for value in values], dtype=torch.float64)
    weight.copy_(rounded.view_as(weight))
