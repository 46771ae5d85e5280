"""The public names of the rooms, pinned: taking one away is a decision, not an accident."""

import mixers
import search

MIXERS = {
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
}


def test__mixers__all__is_pinned_and_resolves() -> None:
    assert set(mixers.__all__) == MIXERS
    assert all(getattr(mixers, name) is not None for name in mixers.__all__)


def test__search__all__is_pinned_and_resolves() -> None:
    assert set(search.__all__) == {"StudySpec", "open", "run"}
    assert all(callable(getattr(search, name)) for name in search.__all__)


def test__builtin_mixers__available__are_the_documented_ten() -> None:
    own = {kind for kind, facts in mixers.available().items() if "." not in kind}
    paper = {"attention", "average", "bproj", "hardmax_shift", "identity", "sepconv"}
    assert own == paper | {"dynamicconv", "fourier", "lightconv", "sparse_attention"}
