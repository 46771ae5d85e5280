"""Step 3 (Lemma 9): hardmax by a hot softmax, every activation by four ReLUs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import torch
from torch import nn

from mixers.activation import PiecewiseLinear
from mixers.builtin.attention import Attention, AttentionConfig
from mixers.builtin.hardmax_shift import HardmaxShift
from mixers.model import Block, Encoder
from mixers.spec import BlockSpec
from mixers.theory.network import Network
from mixers.theory.sizes import Sizes, TheoryError

N_RELUS = 4


@dataclass(frozen=True)
class Relu:
    """weight * relu(sign * (t - start))."""

    weight: float
    sign: int
    start: float


def four_relus(phi: PiecewiseLinear, eps: float) -> tuple[float, list[Relu]]:
    """Return (constant, at most four ReLUs) whose sum is phi outside [c - eps, c), c breakpoints.

    The paper writes out the case of a constant first piece. In general the sum starts from the
    value of a constant piece and unfolds to both sides, with arguments -(t - c) to the left.

    Raises:
        TheoryError: eps is not in (0, distance of the breakpoints].
    """
    breaks = phi.breakpoints
    if eps <= 0 or (len(breaks) == 2 and eps > breaks[1] - breaks[0]):
        raise TheoryError(f"eps = {eps} must be above 0 and fit between the breakpoints {breaks}")
    constant = phi.slopes.index(0.0)
    relus = []
    for i in range(len(breaks)):
        c, before, after = breaks[i], phi.slopes[i], phi.slopes[i + 1]
        start = before * (c - eps) + phi.intercepts[i]
        ramp = (after * c + phi.intercepts[i + 1] - start) / eps
        if i >= constant:
            relus += [Relu(ramp - before, 1, c - eps), Relu(after - ramp, 1, c)]
        else:
            relus += [Relu(after - ramp, -1, c), Relu(ramp - before, -1, c - eps)]
    return phi.intercepts[constant], relus


def soften(
    network: Network, *, inverse_temperature: float, quantizer_eps: float = 2.0**-10
) -> Network:
    """Return the network with softmax attention of head size 1 and feed-forward layers of 4 ReLUs.

    Args:
        network: With hardmax and piecewise-linear activations.
        inverse_temperature: The factor of the scores.
        quantizer_eps: Width of the ramps of the quantizer, in units; all others are 1/4 wide, as
            ids lie on the grid and a narrow ramp costs precision.

    Raises:
        TheoryError: d = 1, where a block has one head of size 1 and the shift needs two.
    """
    sizes = network.sizes
    if sizes.d < 2:
        raise TheoryError("a selective shift needs two heads of size 1, so d >= 2; got d = 1")
    old = network.encoder
    blocks = tuple(softened(block, sizes) for block in old.spec.blocks)
    encoder = Encoder(old.spec.model_copy(update={"blocks": blocks}))
    encoder.double().requires_grad_(False).eval()
    encoder.token_embedding.weight.copy_(old.token_embedding.weight)
    if encoder.position_embedding is not None and old.position_embedding is not None:
        encoder.position_embedding.weight.copy_(old.position_embedding.weight)
    for index, (source, block, spec) in enumerate(
        zip(old.blocks, encoder.blocks, old.spec.blocks, strict=True)
    ):
        assert isinstance(source, Block)
        assert isinstance(block, Block)
        if spec.d_ff == 0:
            fill_attention(block, source, inverse_temperature)
        else:
            units = quantizer_eps if index in network.parts["quantizer"] else 0.25
            assert isinstance(spec.activation, PiecewiseLinear)
            fill_relus(block, source, spec.activation, units * float(sizes.delta))
    return replace(network, encoder=encoder)


def softened(block: BlockSpec, sizes: Sizes) -> BlockSpec:
    """Return the spec of a block in its soft form."""
    if block.d_ff == 0:
        return BlockSpec(mixer=AttentionConfig(n_heads=sizes.d), d_ff=0)
    return BlockSpec(mixer=block.mixer, d_ff=N_RELUS, activation="relu")


def fill_attention(block: Block, source: Block, inverse_temperature: float) -> None:
    """Write psi(b) into head 0 and, for a shift, -psi(b') into head 1."""
    hard, soft = source.mixer, block.mixer
    assert isinstance(hard, HardmaxShift)
    assert isinstance(soft, Attention)
    d = soft.d_model
    for weight in (soft.qkv.weight, soft.qkv.bias, soft.out.weight, soft.out.bias):
        nn.init.zeros_(weight)
    u, scale = hard.score[0], hard.direction[:, 0]
    thresholds = [hard.lower[0]]
    if hard.config.rule == "shift":
        thresholds.append(hard.upper[0])
    for head, (threshold, sign) in enumerate(zip(thresholds, (1.0, -1.0), strict=False)):
        soft.qkv.weight[head] = inverse_temperature * u
        soft.qkv.bias[head] = -inverse_temperature * threshold
        soft.qkv.weight[d + head] = u
        soft.qkv.weight[2 * d + head] = u
        soft.out.weight[:, head] = sign * scale


def fill_relus(block: Block, source: Block, phi: PiecewiseLinear, eps: float) -> None:
    """Write the four ReLUs of one activation."""
    assert block.feed_forward is not None
    assert source.feed_forward is not None
    row, bias = source.feed_forward.wide.weight[0], source.feed_forward.wide.bias[0]
    out = source.feed_forward.narrow.weight[:, 0]
    wide, narrow = block.feed_forward.wide, block.feed_forward.narrow
    for weight in (wide.weight, wide.bias, narrow.weight):
        nn.init.zeros_(weight)
    constant, relus = four_relus(phi, eps)
    for i, relu in enumerate(relus):
        wide.weight[i] = relu.sign * row
        wide.bias[i] = relu.sign * (bias - relu.start)
        narrow.weight[:, i] = relu.weight * out
    narrow.bias.copy_(constant * out)


def sufficient_inverse_temperature(sizes: Sizes, tolerance: float) -> float:
    """Return an inverse temperature at which the ids of Category 1 are off by at most `tolerance`.

    32 / (9 delta^2) [ln(2 B n delta B^(n+1) (B+1)) + n ln(1 + 2B) + ln(1 + B^(n+1)) + ln(1/tol)];
    9 delta^2 / 32 is the smallest distance of the two best scores while ids are off by at most
    delta / 8: 3 delta / 4 between ids times 3 delta / 8 to the threshold. In Theorem 3 the factor
    of its own global layer stands in the last logarithm but one.
    """
    n, B, delta = sizes.n, sizes.B, float(sizes.delta)
    return (32 / (9 * delta**2)) * (
        log(2 * B * n * delta * B ** (n + 1) * (B + 1))
        + n * log(1 + 2 * B)
        + log(1 + sizes.last_scale)
        - log(tolerance)
    )


@dataclass(frozen=True)
class Softness:
    """How far the soft network is from the hard one at one setting.

    Attributes:
        inverse_temperature: The factor of the scores.
        quantizer_eps: Width of the quantizer's ramps, in units.
        ids: Largest difference of the ids after the contextual mapping, real units, over the
            centres of all cubes with distinct columns.
        off: Share of uniform points of [0, 1]^(d x n) where the outputs differ by over 0.01.
    """

    inverse_temperature: float
    quantizer_eps: float
    ids: float
    off: float


def softness(
    network: Network,
    centres: torch.Tensor,
    points: torch.Tensor,
    settings: Sequence[tuple[float, float]],
) -> list[Softness]:
    """Measure the soft network at each (inverse temperature, eps of the quantizer).

    Args:
        network: The hard network.
        centres: Inputs (B, n, d) at which ids are compared.
        points: Inputs at which outputs are compared.
        settings: What to try.
    """
    u = torch.tensor(network.sizes.u, dtype=torch.float64)
    context = ("quantizer", "shifts", "global")
    ids, outputs = network.run(centres, *context) @ u, network.run(points, *network.parts)
    found = []
    for inverse_temperature, eps in settings:
        soft = soften(network, inverse_temperature=inverse_temperature, quantizer_eps=eps)
        error = float((soft.run(centres, *context) @ u - ids).abs().max())
        away = (soft.run(points, *network.parts) - outputs).abs().flatten(1).amax(1) > 0.01
        found.append(Softness(inverse_temperature, eps, error, float(away.double().mean())))
    return found
