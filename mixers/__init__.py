"""Token mixers: contract, registry, built-in mixers, specs and encoder.

Names load on first use, so `import mixers` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixers import testing
    from mixers.base import TokenMixer, zero_padding
    from mixers.catalogue import available, build, register
    from mixers.config import MixerConfig, MixerTraits
    from mixers.cost import count_flops, count_parameters
    from mixers.errors import (
        BrokenPluginError,
        ConformanceError,
        MixerError,
        SpecError,
        UnknownMixerError,
    )
    from mixers.folder import load
    from mixers.model import Encoder
    from mixers.notation import format_architecture, parse_architecture
    from mixers.receptive import route
    from mixers.spec import BlockSpec, EncoderSpec

__all__ = [
    "BlockSpec",
    "BrokenPluginError",
    "ConformanceError",
    "Encoder",
    "EncoderSpec",
    "MixerConfig",
    "MixerError",
    "MixerTraits",
    "SpecError",
    "TokenMixer",
    "UnknownMixerError",
    "available",
    "build",
    "count_flops",
    "count_parameters",
    "format_architecture",
    "load",
    "parse_architecture",
    "register",
    "route",
    "testing",
    "zero_padding",
]

HOMES = {
    "base": ("TokenMixer", "zero_padding"),
    "catalogue": ("available", "build", "register"),
    "config": ("MixerConfig", "MixerTraits"),
    "cost": ("count_flops", "count_parameters"),
    "errors": (
        "BrokenPluginError",
        "ConformanceError",
        "MixerError",
        "SpecError",
        "UnknownMixerError",
    ),
    "folder": ("load",),
    "model": ("Encoder",),
    "notation": ("format_architecture", "parse_architecture"),
    "receptive": ("route",),
    "spec": ("BlockSpec", "EncoderSpec"),
}
HOME_OF = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "testing":
        return import_module("mixers.testing")
    if name not in HOME_OF:
        raise AttributeError(f"module 'mixers' has no attribute {name!r}")
    return getattr(import_module(f"mixers.{HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
