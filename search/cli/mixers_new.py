"""`search mixers new`: a complete package with one mixer, which passes its own tests at once."""

import keyword
import re
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from search.cli.mixers_template import FILES
from search.cli.output import note, write

NAME = re.compile(r"(?:(?P<distribution>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)\.)?(?P<mixer>[a-z]\w*)")
RESERVED = ("local", "mixsearch")


@dataclass(frozen=True)
class PackageNames:
    """What things are called in a new package."""

    distribution: str
    mixer: str

    @property
    def kind(self) -> str:
        """Name of the mixer in specs."""
        return f"{self.distribution}.{self.mixer}"

    @property
    def module(self) -> str:
        """Name to import."""
        return self.distribution.replace("-", "_")

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return "".join(part.capitalize() for part in self.mixer.split("_"))


def new_mixer(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="DISTRIBUTION.MIXER, such as acme-mixers.blend; a bare name gets a distribution "
            "of its own.",
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Where to write; by default a folder named as the distribution.",
        ),
    ] = None,
) -> None:
    """Write a package with a working mixer to change: class, entry point, tests, README."""
    names = names_of(name)
    target = folder or Path(names.distribution)
    written = write_package(names, target)
    write("\n".join(str(path) for path in written))
    note(
        f"next: pip install -e '{target}[test]' && pytest {target}; "
        f"then change {names.module}.py and run `search mixers check {names.kind}`"
    )


def names_of(name: str) -> PackageNames:
    """Read the name of a mixer and of its package.

    Raises:
        InputError: No such name can be registered or imported.
    """
    from importlib.util import find_spec

    from search.errors import InputError

    found = NAME.fullmatch(name)
    if found is None or keyword.iskeyword(found["mixer"]):
        raise InputError(
            f"{name!r}: a new mixer is called DISTRIBUTION.MIXER in small letters, digits, '-' "
            "(distribution) and '_' (mixer), such as acme-mixers.blend"
        )
    mixer = found["mixer"]
    names = PackageNames(found["distribution"] or f"{mixer.replace('_', '-')}-mixer", mixer)
    if names.distribution in RESERVED or not names.module.isidentifier():
        raise InputError(f"{name!r}: choose another distribution than {names.distribution!r}")
    if find_spec(names.module) is not None:
        raise InputError(
            f"{name!r}: a module {names.module!r} exists already; choose another distribution"
        )
    return names


def write_package(names: PackageNames, target: Path) -> list[Path]:
    """Write the files of the package and return their paths.

    Raises:
        InputError: The folder exists and is not empty.
    """
    from search.errors import InputError

    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: exists and is not an empty folder; name another with --out")
    values = {
        "distribution": names.distribution,
        "mixer": names.mixer,
        "kind": names.kind,
        "module": names.module,
        "Class": names.class_name,
        "symbol": names.mixer[0].upper(),
    }
    written = []
    for name, text in FILES.items():
        path = target / Template(name).substitute(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(text).substitute(values), encoding="utf-8")
        written.append(path)
    return written
