"""The baselines: the dull rivals that every answer is compared with, in the order they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixers.config import MixerConfig
from search.spec.space import Labels, Space, layer_labels

if TYPE_CHECKING:
    from search.spec.study import StudySpec


@dataclass(frozen=True)
class Baseline:
    """A named architecture, inside the space or not.

    Attributes:
        role: ``reference``, ``cheap``, ``first_half_cheap``, ``last_half_cheap``, ``cheap_short``,
            ``reference_short``, ``uniform:<notation>`` or ``reference_learned_positions``.
        mixers: One config per layer.
        labels: Their notation.
    """

    role: str
    mixers: tuple[MixerConfig, ...]
    labels: Labels


def baselines(study: StudySpec) -> tuple[Baseline, ...]:
    """Returns the study's baselines in the order in which they are trained, each stack once."""
    n = study.encoder.n_layers
    half = n // 2
    reference, cheap = reference_mixer(study), cheap_mixer(study)
    stacks: dict[str, list[MixerConfig]] = {
        "reference": [reference] * n,
        "cheap": [cheap] * n,
        "first_half_cheap": [cheap] * half + [reference] * (n - half),
        "last_half_cheap": [reference] * (n - half) + [cheap] * half,
        "cheap_short": [cheap] * half,
        "reference_short": [reference] * half,
    }
    for label, config in Space.product(study).choices.items():
        stacks[f"uniform:{label}"] = [config] * n
    if getattr(reference, "rotary", False) is True:
        plain = reference.model_copy(update={"rotary": False})
        stacks["reference_learned_positions"] = [plain] * n
    listed: dict[Labels, Baseline] = {}
    for role, mixers in stacks.items():
        labels = layer_labels(mixers, study)
        if mixers and labels not in listed:
            listed[labels] = Baseline(role, tuple(mixers), labels)
    return tuple(listed.values())


def reference_mixer(study: StudySpec) -> MixerConfig:
    """Returns the mixer to be replaced; plain rotary attention where it is no choice."""
    from mixers.notation import parse_architecture
    from search.spec.study import DEFAULT_REFERENCE

    choices = Space.product(study).choices
    found = named_choice(study.baselines.reference, choices)
    if found is None and study.baselines.reference == DEFAULT_REFERENCE:
        return parse_architecture(f"{DEFAULT_REFERENCE}(rotary=true)")[0]
    if found is None:
        raise ValueError(unknown_choice(study.baselines.reference, choices))
    return found


def cheap_mixer(study: StudySpec) -> MixerConfig:
    """Returns the replacement; where the default is no choice, the first that is no reference."""
    from search.spec.study import DEFAULT_CHEAP

    choices = Space.product(study).choices
    found = named_choice(study.baselines.cheap, choices)
    if found is not None:
        return found
    if study.baselines.cheap != DEFAULT_CHEAP:
        raise ValueError(unknown_choice(study.baselines.cheap, choices))
    reference = reference_mixer(study)
    others = [config for config in choices.values() if config != reference]
    return others[0] if others else reference


def named_choice(name: str, choices: Mapping[str, MixerConfig]) -> MixerConfig | None:
    """Finds a choice by its notation or, failing that, the first of a kind."""
    if name in choices:
        return choices[name]
    return next((config for config in choices.values() if config.kind == name), None)


def unknown_choice(name: str, choices: Mapping[str, MixerConfig]) -> str:
    """Says that a name is no choice of the space, with the nearest that is."""
    from mixers.registry import suggestion

    return f"{name!r} is no choice of the space; {suggestion(name, choices)}"
