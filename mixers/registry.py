"""Plugins by entry points: found, checked, set aside when broken; the same way for all kinds.

Names: bare kinds belong to the distribution `mixsearch`; everybody else's are
`<distribution>.<name>`, equal to the entry-point name; `local.<name>` is for classes registered by
a notebook or script. Kinds are unique whatever their case. When two packages claim one kind,
neither gets it and the reason names both; a built-in is never replaced.
"""

import difflib
import inspect
import re
import threading
import typing
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import CodeType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mixers.errors import BrokenPluginError, MixerError, PluginWarning, UnknownMixerError

if TYPE_CHECKING:
    from mixers.base import TokenMixer

PluginT = TypeVar("PluginT")

OWN_DISTRIBUTION = "mixsearch"
LOCAL = "local"
KIND = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]*(\.[A-Za-z0-9_\-]+)*")


@dataclass(frozen=True)
class Entry(Generic[PluginT]):
    """One plugin as found.

    Attributes:
        kind: Its name.
        distribution: The package that brought it; "local" for `register`.
        version: That package's version; for "local" the sha256 of the class source.
        origin: `module:Class`.
        plugin: The class, or None if broken.
        reason: Why it is broken, or None.
    """

    kind: str
    distribution: str
    version: str
    origin: str
    plugin: type[PluginT] | None
    reason: str | None


class Registry(Generic[PluginT]):
    """The plugins of one entry-point group that fulfil one contract.

    Discovery happens at first use and is kept until `reset`.

    Args:
        group: Entry-point group, e.g. "mixers.v1".
        contract: Returns the base class; called at first use, so that a registry costs no import.
        noun: What a plugin is called in messages.
        unknown_error: Raised for a name that nothing is registered under.
        flaw_of: Returns what is wrong with a class that has all its parts, or None.
    """

    def __init__(
        self,
        group: str,
        *,
        contract: Callable[[], type[PluginT]],
        noun: str = "plugin",
        unknown_error: type[ValueError] = UnknownMixerError,
        flaw_of: Callable[[type[PluginT]], str | None] | None = None,
    ) -> None:
        self.group = group
        self.noun = noun
        self.contract = contract
        self.unknown_error = unknown_error
        self.flaw_of = flaw_of
        self.generation = 0
        self.lock = threading.RLock()
        self.found: tuple[Entry[PluginT], ...] | None = None
        self.local: dict[str, Entry[PluginT]] = {}

    def entries(self) -> tuple[Entry[PluginT], ...]:
        """Return all plugins, broken ones included, in the order of their names."""
        return (*self.discovered(), *(self.local[kind] for kind in sorted(self.local)))

    def usable(self) -> dict[str, type[PluginT]]:
        """Return {kind: class} of the plugins that work, in the order of their names."""
        return {entry.kind: entry.plugin for entry in self.entries() if entry.plugin is not None}

    def get(self, kind: str) -> Entry[PluginT]:
        """Return the working plugin of this name.

        Raises:
            BrokenPluginError: It is installed but was set aside.
            ValueError: Nothing has this name (the class given as `unknown_error`).
        """
        same = [entry for entry in self.entries() if entry.kind == kind]
        for entry in same:
            if entry.plugin is not None:
                return entry
        if same:
            raise BrokenPluginError("; ".join(broken_text(self.noun, entry) for entry in same))
        raise self.unknown_error(f"unknown {self.noun} {kind!r}; {suggestion(kind, self.usable())}")

    def load(self, kind: str) -> type[PluginT]:
        """Return the class of this name; raises as `get` does."""
        plugin = self.get(kind).plugin
        assert plugin is not None
        return plugin

    def register(self, plugin: type[PluginT], name: str | None = None) -> type[PluginT]:
        """Register a class of a notebook or script as `local.<name>`; usable as a decorator.

        The same name again replaces the former class.

        Args:
            plugin: The class.
            name: Only for plugins without a config; others are named by `config_type.kind`.

        Raises:
            MixerError: The class does not fulfil the contract or the name is not `local.<name>`.
        """
        kind = config_kind(plugin) or name
        if kind is None:
            raise MixerError(f"register({plugin!r}) needs a name: local.<name>")
        if not kind.startswith(f"{LOCAL}.") or not KIND.fullmatch(kind):
            raise MixerError(
                f"register() takes names of the form local.<name>, not {kind!r}; "
                "bare names are built-in, others come with a package"
            )
        reason = self.refusal(plugin, kind)
        if reason is not None:
            raise MixerError(f"{self.noun} {kind!r} cannot be registered: {reason}")
        with self.lock:
            twin = next((k for k in self.local if k != kind and k.lower() == kind.lower()), None)
            if twin is not None:
                raise MixerError(f"{self.noun} {kind!r} differs from {twin!r} only in case")
            self.local[kind] = Entry(
                kind, LOCAL, source_version(plugin), origin_of(plugin), plugin, None
            )
            self.generation += 1
        return plugin

    def unregister(self, kind: str) -> None:
        """Forget a `local.<name>`; nothing happens if it is not there."""
        with self.lock:
            self.local.pop(kind, None)
            self.generation += 1

    def reset(self) -> None:
        """Forget what was discovered; the next use reads the entry points again."""
        with self.lock:
            self.found = None
            self.generation += 1

    def discovered(self) -> tuple[Entry[PluginT], ...]:
        """Return what the entry points brought, reading them at first use."""
        with self.lock:
            if self.found is not None:
                return self.found
            self.found = tuple(self.read(entry_points(group=self.group)))
            self.generation += 1
            broken = [entry for entry in self.found if entry.reason is not None]
        for entry in broken:
            warnings.warn(broken_text(self.noun, entry), PluginWarning, stacklevel=3)
        return self.found

    def read(self, points: Iterable[EntryPoint]) -> Iterable[Entry[PluginT]]:
        """Load entry points; yields one entry each, in an order of names, not of discovery."""
        points = sorted(points, key=lambda point: (fold(point.name), point.name, owner(point)))
        claims: dict[str, list[EntryPoint]] = {}
        for point in points:
            claims.setdefault(fold(point.name), []).append(point)
        for point in points:
            plugin: type[PluginT] | None = None
            reason = name_refusal(point, claims[fold(point.name)])
            if reason is None:
                plugin, reason = self.load_point(point)
            yield Entry(point.name, *owner(point), point.value, plugin, reason)

    def load_point(self, point: EntryPoint) -> tuple[type[PluginT] | None, str | None]:
        """Import one entry point; returns (class, None) or (None, why not)."""
        try:
            plugin = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may even call sys.exit() at import
            return None, f"{type(error).__name__} at import: {first_line(error)}"
        reason = self.refusal(plugin, point.name)
        return (plugin, None) if reason is None else (None, reason)

    def refusal(self, plugin: Any, kind: str) -> str | None:
        """Say why the object does not fulfil the contract under this name, or None."""
        contract = self.contract()
        if not (isinstance(plugin, type) and issubclass(plugin, contract)):
            return f"{plugin!r} is not a subclass of {contract.__module__}.{contract.__name__}"
        missing = sorted(getattr(plugin, "__abstractmethods__", ()))
        if missing:
            return f"{plugin.__name__} lacks {', '.join(missing)}"
        named = config_kind(plugin)
        if named is not None and named != kind:
            return f"its config says kind {named!r}, the entry point says {kind!r}"
        return None if self.flaw_of is None else self.flaw_of(plugin)


def name_refusal(point: EntryPoint, claims: list[EntryPoint]) -> str | None:
    """Say why an entry point may not have its name, or None; `claims` are all that want it."""
    distribution, version = owner(point)
    if normalise(distribution) == OWN_DISTRIBUTION:
        return None
    own = f"{normalise(distribution)}.{point.name.rpartition('.')[2]}"
    for claim in claims:
        other, other_version = owner(claim)
        if normalise(other) == OWN_DISTRIBUTION:
            return (
                f"{claim.name!r} is built in ({other} {other_version}) and is never replaced; "
                f"{distribution} {version} must call its own {own!r}"
            )
    if len(claims) > 1:
        owners = " and ".join(f"{claim.name!r} of {' '.join(owner(claim))}" for claim in claims)
        return f"one name, claimed more than once: {owners}; none of them is used"
    if not KIND.fullmatch(point.name):
        return "a name has letters, digits, '_', '-' and '.' only"
    prefix, dot, _ = point.name.rpartition(".")
    if not dot:
        return f"bare names are reserved for {OWN_DISTRIBUTION}; call it {own!r}"
    if normalise(prefix) != normalise(distribution) or normalise(prefix) == LOCAL:
        return f"the part before the last dot must be the package's name; call it {own!r}"
    return None


def owner(point: EntryPoint) -> tuple[str, str]:
    """Return (name, version) of the distribution that brought an entry point."""
    return (point.dist.name, point.dist.version) if point.dist else ("unknown", "unknown")


def normalise(distribution: str) -> str:
    """Return a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def fold(kind: str) -> str:
    """Return what two kinds must not have in common."""
    prefix, dot, name = kind.rpartition(".")
    return f"{normalise(prefix)}{dot}{name.lower()}"


def config_kind(plugin: Any) -> str | None:
    """Return the kind that a plugin's `config_type` is bound to, or None if it has none."""
    fields = getattr(getattr(plugin, "config_type", None), "model_fields", {})
    if "kind" not in fields:
        return None
    kinds = typing.get_args(fields["kind"].annotation)
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], str) else None


def broken_text(noun: str, entry: Entry[Any]) -> str:
    """Say in one line which plugin is set aside and why."""
    return (
        f"{noun} {entry.kind!r} of package {entry.distribution} {entry.version} "
        f"({entry.origin}) is broken and set aside: {entry.reason}"
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Say which known name is meant, or list them all."""
    known = list(known)
    near = nearest(name, known)
    listed = ", ".join(known) or "none"
    return f"did you mean {near!r}? known: {listed}" if near else f"known: {listed}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, or None; case and a package prefix do not count."""
    by_text: dict[str, str] = {}
    for candidate in known:
        by_text.setdefault(candidate.lower().rpartition(".")[2], candidate)
    for candidate in known:
        by_text[candidate.lower()] = candidate
    hits = difflib.get_close_matches(str(name).lower(), list(by_text), n=1, cutoff=0.6)
    return by_text[hits[0]] if hits else None


def first_line(error: BaseException) -> str:
    """Return an error's text up to the first line break."""
    return (str(error).splitlines() or ["no message"])[0]


def origin_of(plugin: type) -> str:
    """Return `module:Class`."""
    return f"{plugin.__module__}:{plugin.__qualname__}"


def source_version(plugin: type) -> str:
    """Return "sha256:<hex>" over the source of a class and of its config class."""
    import hashlib

    parts = [class_text(plugin)]
    config_type = getattr(plugin, "config_type", None)
    if isinstance(config_type, type):
        parts.append(class_text(config_type))
    return "sha256:" + hashlib.sha256("\n".join(parts).encode()).hexdigest()


def class_text(cls: type) -> str:
    """Return the source of a class, or its code where no source is at hand (some notebooks)."""
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        functions = {
            name: inspect.unwrap(getattr(member, "__func__", member))
            for name, member in sorted(vars(cls).items())
            if callable(getattr(member, "__func__", member))
        }
        return repr(
            [
                (name, code_value(function.__code__))
                for name, function in functions.items()
                if hasattr(function, "__code__")
            ]
        )


def code_value(code: CodeType) -> tuple[Any, ...]:
    """Return what makes two code objects the same, without file names and addresses."""
    constants = [code_value(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return code.co_code.hex(), code.co_names, code.co_varnames, constants


def token_mixer() -> "type[TokenMixer[Any]]":
    """Return the contract of the group `mixers.v1`."""
    from mixers.base import TokenMixer

    return TokenMixer


def mixer_flaw(plugin: "type[TokenMixer[Any]]") -> str | None:
    """Return what is wrong with a mixer's config or claims, which every table and spec reads."""
    from mixers.base import flaw_of

    return flaw_of(plugin)


mixer_registry: "Registry[TokenMixer[Any]]" = Registry(
    "mixers.v1", contract=token_mixer, noun="mixer", flaw_of=mixer_flaw
)
