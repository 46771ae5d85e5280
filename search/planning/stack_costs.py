"""What single stacks of a study cost: the dearest and the cheapest, timed for a few steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.errors import RunFailedError
from search.messages import TrialFailure
from search.spec.space import Space

if TYPE_CHECKING:
    from mixers.config import MixerConfig
    from mixers.spec import EncoderSpec
    from search.slots.runners import InProcessRunner, SlotRunner
    from search.spec.study import StudySpec


@dataclass(frozen=True)
class StackCost:
    """What one architecture costs.

    Attributes:
        notation: The stack.
        flops: Forward FLOPs of one sequence.
        step_s: Seconds of a training step, measured.
        trial_s: Seconds of a whole trial, from the parts measured.
        peak_memory_bytes: Peak memory of the training process.
    """

    notation: str
    flops: int
    step_s: float
    trial_s: float
    peak_memory_bytes: int


def extremes(study: StudySpec) -> tuple[tuple[MixerConfig, ...], tuple[MixerConfig, ...]]:
    """Returns the stacks of the most and of the fewest FLOPs in the study's space."""
    from mixers.cost import count_flops
    from mixers.notation import parse_architecture
    from mixers.registry import mixer_registry

    sizes = {"d_model": study.encoder.d_model, "seq_len": study.sizes.max_seq_len}

    def flops(config: MixerConfig) -> int:
        return mixer_registry.load(config.kind).flops(config, **sizes)

    if study.space.architectures:
        listed = [parse_architecture(notation) for notation in study.space.architectures]
        listed.sort(key=lambda stack: count_flops(study.encoder_spec(stack)))
        return listed[-1], listed[0]
    layers = [tuple(layer.values()) for layer in Space.of(study).layers]
    return tuple(max(c, key=flops) for c in layers), tuple(min(c, key=flops) for c in layers)


def cost_of(study: StudySpec, spec: EncoderSpec, bench: SlotRunner | InProcessRunner) -> StackCost:
    """Times one stack.

    Raises:
        RunFailedError: It cannot be trained.
    """
    from mixers.cost import count_flops

    timing = bench.time_steps(spec)
    if isinstance(timing, TrialFailure):
        raise RunFailedError(f"{spec.notation}: {timing.message}")
    training = study.training
    return StackCost(
        notation=spec.notation,
        flops=count_flops(spec),
        step_s=timing.step_s,
        trial_s=timing.step_s * training.steps
        + timing.evaluation_s * training.validations
        + timing.rest_s,
        peak_memory_bytes=timing.peak_memory_bytes,
    )
