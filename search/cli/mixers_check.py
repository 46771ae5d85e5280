"""`search mixers check`: whether what a mixer claims is true."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.encoder_specs import is_notation
from search.cli.options import JsonOption
from search.cli.output import print_json, write

if TYPE_CHECKING:
    from mixers import TokenMixer
    from mixers.testing import Check


def check_mixers(
    mixers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MIXER]...",
            help="Name, notation such as 'sepconv(kernel_size=4)', or module:Class of a file that "
            "is in no package yet; all registered mixers when left out.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure every claim of a mixer; ends with code 1 and a counterexample if one is false."""
    from mixers.registry import mixer_registry
    from search.errors import RunFailedError

    results = []
    named = mixers or list(mixer_registry.usable())
    width = max(map(len, named)) + 2
    for name in named:
        measured = [measure(check) for check in checks_of(name)]
        results += measured
        failed = [result for result in measured if not result["holds"]]
        if json:
            continue
        write(f"{name:<{width}}{len(measured) - len(failed)} of {len(measured)} checks hold")
        for result in failed:
            write(f"  {result['check']}: {result['reason']}")
    if json:
        print_json(results)
    false = sum(not result["holds"] for result in results)
    if false:
        raise RunFailedError(f"{false} of {len(results)} checks do not hold, see above")


def measure(check: "Check") -> dict[str, Any]:
    """One check as a row: what was checked, whether it holds, why not."""
    from mixers.errors import MixerError

    reason = None
    try:
        check()
    except MixerError as error:
        reason = " ".join(str(error).split())
    return {
        "kind": check.subject.kind,
        "check": check.name,
        "holds": reason is None,
        "reason": reason,
    }


def checks_of(name: str) -> "list[Check]":
    """Return the checks of a name, a notation or a `module:Class`.

    Raises:
        InputError: The class cannot be loaded or cannot be built without settings.
        MixerError: Nothing has this name, or its settings are wrong.
    """
    from pydantic import ValidationError

    from mixers import parse_architecture
    from mixers.explain import explain
    from mixers.registry import mixer_registry
    from mixers.testing import checks
    from search.errors import InputError

    if ":" in name and "(" not in name:
        mixer = class_of(name)
        try:
            return checks(mixer)
        except ValidationError as error:
            lines = "; ".join(explain(error, mixer.config_type))
            raise InputError(f"{name} cannot be built from its kind alone: {lines}") from None
    if is_notation(name):
        return [
            check
            for config in dict.fromkeys(parse_architecture(name))
            for check in checks(config.kind, [config])
        ]
    mixer_registry.get(name)
    return checks(name)


def class_of(name: str) -> "type[TokenMixer[Any]]":
    """Import a mixer's class; a module in the working folder is found, too.

    Raises:
        InputError: There is no such module or class, it cannot be imported, or it is no mixer.
    """
    import sys
    from importlib import import_module

    from mixers import TokenMixer
    from search.errors import InputError

    module_name, _, class_name = name.partition(":")
    sys.path.insert(0, "")
    try:
        module = import_module(module_name)
    except (Exception, SystemExit) as error:
        advice = "; name the module, without .py" if module_name.endswith(".py") else ""
        raise InputError(
            f"{name}: cannot import {module_name!r}: {type(error).__name__}: {error}{advice}"
        ) from None
    finally:
        sys.path.remove("")
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, TokenMixer)):
        mixers = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, TokenMixer) and value is not TokenMixer
        ]
        raise InputError(
            f"{name}: no mixer class {class_name!r} in {module_name}; "
            f"it has {', '.join(mixers) or 'none'}"
        )
    return found
