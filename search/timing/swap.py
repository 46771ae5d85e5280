"""What a block costs with another mixer in place of attention, by FLOPs and by the clock."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.timing.stopwatch import Clock, Pass, Stopwatch, interleaved, pass_of

if TYPE_CHECKING:
    import torch

    from mixers import EncoderSpec

ATTENTION = "attention"


@dataclass(frozen=True)
class Swap:
    """A block with a mixer beside the same block with fused attention, at one length.

    Attributes:
        mixer: compact notation.
        seq_len: tokens.
        batch: sequences.
        kind: the pass that was timed.
        flops_ratio: FLOPs of the block with attention over those of this one, by definition.
        ratio: median over the rounds of attention's seconds over this one's; above 1 it is faster.
        least: smallest ratio of a round.
        most: largest ratio of a round.
        seconds: median seconds of this block.
        attention_seconds: median seconds of the block with attention.
    """

    mixer: str
    seq_len: int
    batch: int
    kind: Pass
    flops_ratio: float
    ratio: float
    least: float
    most: float
    seconds: float
    attention_seconds: float


def measure_swaps(
    notations: Sequence[str],
    *,
    d_model: int,
    seq_lens: Sequence[int],
    batch: int,
    device: torch.device,
    dtype: torch.dtype,
    kinds: Sequence[Pass] = ("forward", "training"),
    attention: str = ATTENTION,
    clock: Clock = "wall",
    rounds: int = 5,
    told: Callable[[str], object] = lambda _: None,
) -> list[Swap]:
    """Times whole blocks (mixer, norms, feed-forward layer of width 4 D), in turn.

    Args:
        notations: mixers in compact notation.
        d_model: features.
        seq_lens: lengths, each measured by itself.
        batch: sequences.
        device: where.
        dtype: of weights and tokens.
        kinds: passes to time.
        attention: notation of what they are held against.
        clock: see `search.timing.stopwatch.Stopwatch`.
        rounds: rounds of each length.
        told: is told what is measured next.

    Raises:
        MixerError: a notation does not fit the width, or is more than one layer.
    """
    from mixers import count_flops

    stopwatch = Stopwatch(device, clock)
    found = []
    for seq_len in seq_lens:
        specs = {
            notation: block_spec(notation, d_model, seq_len)
            for notation in dict.fromkeys((attention, *notations))
        }
        flops = {notation: count_flops(spec) for notation, spec in specs.items()}
        for kind in kinds:
            told(f"{batch} x {seq_len} tokens, {kind}")
            calls = {
                notation: block_pass(spec, batch, kind, device, dtype)
                for notation, spec in specs.items()
            }
            seconds = interleaved(calls, stopwatch, rounds=rounds)
            for notation in notations:
                pairs = zip(seconds[attention], seconds[notation], strict=True)
                ratios = [theirs / own for theirs, own in pairs]
                found.append(
                    Swap(
                        mixer=notation,
                        seq_len=seq_len,
                        batch=batch,
                        kind=kind,
                        flops_ratio=flops[attention] / flops[notation],
                        ratio=statistics.median(ratios),
                        least=min(ratios),
                        most=max(ratios),
                        seconds=statistics.median(seconds[notation]),
                        attention_seconds=statistics.median(seconds[attention]),
                    )
                )
    return found


def block_spec(notation: str, d_model: int, seq_len: int) -> EncoderSpec:
    """Returns an encoder of one block, whose embeddings are not used."""
    from mixers import EncoderSpec, MixerError

    spec = EncoderSpec.of(
        notation, d_ff=4 * d_model, vocab_size=1, d_model=d_model, max_seq_len=seq_len
    )
    if spec.n_layers != 1:
        raise MixerError(f"{notation!r} is {spec.n_layers} layers; one block is timed, so name one")
    return spec


def block_pass(
    spec: EncoderSpec, batch: int, kind: Pass, device: torch.device, dtype: torch.dtype
) -> Callable[[], object]:
    """Returns a pass through the block of a spec, ready to be timed."""
    import torch

    from mixers.model import Block

    torch.manual_seed(0)
    block = Block(spec, spec.blocks[0]).to(device, dtype)
    x = torch.randn(batch, spec.max_seq_len, spec.d_model).to(device, dtype)
    return pass_of(block, x, list(block.parameters()), kind)


def pays_from(swaps: Sequence[Swap], kind: Pass) -> int | None:
    """Returns the shortest measured length from which on a swap is never slower, or None.

    Args:
        swaps: of one mixer.
        kind: the pass.
    """
    shortest = None
    for swap in sorted((s for s in swaps if s.kind == kind), key=lambda s: -s.seq_len):
        if swap.ratio < 1.0:
            break
        shortest = swap.seq_len
    return shortest


def lengths_up_to(seq_len: int, least: int = 64) -> list[int]:
    """Returns the powers of two from ``least`` below a length, and the length itself."""
    lengths = []
    length = least
    while length < seq_len:
        lengths.append(length)
        length *= 2
    return [*lengths, seq_len]
