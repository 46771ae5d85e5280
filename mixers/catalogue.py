"""What is registered, and one mixer from a config: the functions people call."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from mixers.config import MixerConfig, MixerTraits
from mixers.errors import SpecError
from mixers.explain import explain
from mixers.registry import mixer_registry
from mixers.union import AnyMixer

if TYPE_CHECKING:
    from mixers.base import TokenMixer


@dataclass(frozen=True)
class MixerInfo:
    """One row of `available`.

    Attributes:
        kind: Name.
        distribution: Package it came with; "local" for registered classes.
        version: Version of that package; for "local" the sha256 of the class source.
        origin: `module:Class`.
        symbol: Its character in codes, or None if broken.
        traits: Claims of the default config; None if broken or if fields have no default.
        broken: Why it is set aside, or None.
    """

    kind: str
    distribution: str
    version: str
    origin: str
    symbol: str | None
    traits: MixerTraits | None
    broken: str | None


def available() -> dict[str, MixerInfo]:
    """Return every registered mixer, broken ones with their reason, in the order of names.

    A broken plugin that claims a name somebody else holds is listed as `name (distribution)`.
    """
    table: dict[str, MixerInfo] = {}
    entries = sorted(mixer_registry.entries(), key=lambda entry: entry.plugin is None)
    for entry in entries:
        key = entry.kind if entry.kind not in table else f"{entry.kind} ({entry.distribution})"
        plugin = entry.plugin
        table[key] = MixerInfo(
            kind=entry.kind,
            distribution=entry.distribution,
            version=entry.version,
            origin=entry.origin,
            symbol=plugin.symbol if plugin else None,
            traits=default_traits(plugin) if plugin else None,
            broken=entry.reason,
        )
    return dict(sorted(table.items()))


def default_traits(plugin: "type[TokenMixer[Any]]") -> MixerTraits | None:
    """Return the claims of a mixer's default config, or None if it has no default."""
    from mixers.base import default_config

    config = default_config(plugin)
    return None if config is None else plugin.traits(config)


def mixer_config(config: MixerConfig | dict[str, Any] | str) -> MixerConfig:
    """Return the validated config of a mapping, a bare name or a config.

    Raises:
        UnknownMixerError: Nothing has this name.
        BrokenPluginError: The plugin of this name is set aside.
        SpecError: A field is wrong; one line per problem.
    """
    kind = config if isinstance(config, str) else None
    if isinstance(config, dict):
        kind = config.get("kind")
    if isinstance(kind, str):
        mixer_registry.get(kind)
    adapter: TypeAdapter[MixerConfig] = TypeAdapter(AnyMixer)
    try:
        return adapter.validate_python(config)
    except ValidationError as error:
        raise SpecError("\n".join(explain(error, AnyMixer))) from None


def build(
    config: MixerConfig | dict[str, Any] | str,
    *,
    d_model: int,
    max_seq_len: int,
    causal: bool = False,
) -> "TokenMixer[Any]":
    """Return a mixer's module, freshly initialised from torch's seed.

    Args:
        config: `{"kind": ..., ...}`, a bare name, or a config.
        d_model: Features per token.
        max_seq_len: Longest input in tokens.
        causal: No output may look ahead.

    Raises:
        MixerError: As `mixer_config`, or the config does not fit the sizes.
    """
    valid = mixer_config(config)
    plugin = mixer_registry.load(valid.kind)
    return plugin(valid, d_model=d_model, max_seq_len=max_seq_len, causal=causal)


def register(plugin: "type[TokenMixer[Any]]") -> "type[TokenMixer[Any]]":
    """Register a mixer class of a notebook or script under its kind `local.<name>`."""
    return mixer_registry.register(plugin)
