"""Examine the installation: versions, machine, folders, store, plugins and names of packages.

Every finding is `ok`, `warning` or `wrong`; whatever is not ok comes with what to do.
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from search.upkeep.findings import Finding, disk

if TYPE_CHECKING:
    from search.settings import Settings

DISTRIBUTION = "mixsearch"
ROOMS = ("mixers", "search", "service")
PLUGIN_GROUPS = ("search.tasks.v1", "search.metrics.v1", "search.commands")


def examine(store: str, local: "Settings") -> Iterator[Finding]:
    """Look at everything that a run depends on.

    Args:
        store: URL of the store, as `--store` takes it.
        local: Settings of the machine.

    Yields:
        Findings, in the order in which they are worth reading.
    """
    from search.upkeep.doctor_store import store_health

    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        versions,
        import_names,
        devices,
        lambda: disk("cache", local.cache_dir),
        lambda: disk("working directory", Path.cwd()),
        lambda: store_state(store),
        lambda: store_health(store, local),
        mixers_found,
        plugins,
    )
    for check in checks:
        try:
            yield from check()
        except Exception as error:  # an examination must reach its end
            name = getattr(check, "__name__", "check")
            yield Finding(name, "wrong", f"{type(error).__name__}: {error}", "report this")


def versions() -> Iterator[Finding]:
    """Python, our version, and each required distribution against its requirement."""
    from packaging.requirements import Requirement

    own = importlib.metadata.version(DISTRIBUTION)
    yield Finding("version", "ok", f"{DISTRIBUTION} {own}, Python {platform.python_version()}")
    found = []
    for line in importlib.metadata.requires(DISTRIBUTION) or []:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        if requirement.specifier.contains(version or "0", prereleases=True) and version:
            found.append(f"{requirement.name} {version}")
            continue
        state = f"{requirement.name} {version}" if version else f"{requirement.name} is missing"
        yield Finding(
            "dependency",
            "wrong",
            f"{state}, {requirement} is needed",
            f'pip install "{requirement}"',
        )
    yield Finding("dependencies", "ok", ", ".join(found))


def import_names() -> Iterator[Finding]:
    """Whether `mixers`, `search` and `service` mean our packages and nobody else's."""
    owners = importlib.metadata.packages_distributions()
    ours = Path(__file__).resolve().parents[2]
    seen_by_scripts = _resolve_in_working_directory()
    clean = True
    for room in ROOMS:
        others = sorted(set(owners.get(room, ())) - {DISTRIBUTION})
        if others:
            clean = False
            yield Finding(
                "import names",
                "wrong",
                f"{', '.join(others)} also installs a package called {room!r}",
                f"pip uninstall {' '.join(others)}, then pip install --force-reinstall "
                f"--no-deps {DISTRIBUTION}; or use a separate environment",
            )
        path = seen_by_scripts.get(room)
        if path is not None and path.resolve() != (ours / room):
            clean = False
            yield Finding(
                "import names",
                "wrong",
                f"'import {room}' here finds {path}, not {ours / room}",
                f"rename {path.name!r}, or work in another directory",
            )
    if clean:
        yield Finding("import names", "ok", f"{', '.join(ROOMS)} come from {ours}")


def _resolve_in_working_directory() -> dict[str, Path]:
    """What a script started here would import: the working directory comes first for it."""
    code = (
        "import importlib.util, json\n"
        "found = {}\n"
        f"for name in {ROOMS!r}:\n"
        "    spec = importlib.util.find_spec(name)\n"
        "    if spec is not None:\n"
        "        places = list(spec.submodule_search_locations or [spec.origin])\n"
        "        found[name] = places[0]\n"
        "print(json.dumps(found))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return {name: Path(place) for name, place in json.loads(answer.stdout).items()}


def devices() -> Iterator[Finding]:
    """Cores that this process may use, memory, and accelerators."""
    from search.devices import usable_cores

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    yield Finding(
        "machine", "ok", f"{usable_cores()} cores, {memory:.1f} GiB memory, {platform.platform()}"
    )
    import torch

    if not torch.cuda.is_available():
        built = torch.version.cuda is not None
        hint = "" if not built else " (this torch is built for CUDA, but finds no GPU)"
        yield Finding("devices", "ok", f"cpu{hint}")
        return
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        bf16 = "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "no bf16"
        size = card.total_memory / (1 << 30)
        yield Finding("devices", "ok", f"cuda:{index} {card.name}, {size:.1f} GiB, {bf16}")


def store_state(url: str) -> Iterator[Finding]:
    """Whether the store opens, is ours, is of this version and can be written now."""
    from search.errors import InputError, NothingThereError, SearchError, StoreError
    from search.store.address import ANOTHER
    from search.store.repo import Store

    try:
        with Store.open(url, create=False) as store:
            label, studies = store.url, store.studies()
            trials = sum(study.n_trials for study in studies)
            detail = f"{label}, studies: {len(studies)}, trials: {trials}"
            try:
                with store.writing():
                    pass
                yield Finding("store", "ok", detail)
            except StoreError as error:
                yield Finding(
                    "store",
                    "wrong",
                    f"{detail}, cannot be written: {error}",
                    "end the program that holds it, or check its permissions",
                )
    except NothingThereError as error:
        yield Finding("store", "ok", f"{error} ({error.command})")
    except (InputError, StoreError) as error:
        yield Finding("store", "wrong", str(error), error.command or ANOTHER)
    except SearchError as error:
        yield Finding("store", "wrong", str(error))


def mixers_found() -> Iterator[Finding]:
    """The mixers that are registered, and those that are broken with the reason."""
    from mixers import available

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the findings say what is broken
        found = available()
    usable = [name for name, info in found.items() if info.broken is None]
    yield Finding("mixers", "ok" if usable else "wrong", ", ".join(usable) or "none")
    for name, info in found.items():
        if info.broken is not None:
            yield Finding(
                "mixers",
                "wrong",
                f"{name!r} of {info.distribution} {info.version} is broken: {info.broken}",
                f"repair or uninstall {info.distribution}",
            )


def plugins() -> Iterator[Finding]:
    """Tasks, metrics and commands of other distributions that do not load."""
    for group in PLUGIN_GROUPS:
        names = []
        for entry in importlib.metadata.entry_points(group=group):
            owner = entry.dist.name if entry.dist is not None else "an unknown distribution"
            try:
                entry.load()
            except (Exception, SystemExit) as error:
                yield Finding(
                    "plugins",
                    "wrong",
                    f"{group}: {entry.name!r} of {owner} does not load: "
                    f"{type(error).__name__}: {error}",
                    f"repair or uninstall {owner}",
                )
            else:
                names.append(entry.name)
        yield Finding("plugins", "ok", f"{group}: {', '.join(sorted(names)) or 'none'}")
