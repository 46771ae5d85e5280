"""Write `docs/commands.md` from the commands themselves: `python -m search.cli.reference`."""

import re
import sys
from collections.abc import Iterator
from typing import Any

from search.cli.app import command_tree
from search.cli.failures import EXIT_CODES
from search.cli.group import commands_of

HEADER = """\
# Commands

<!-- Written by `python -m search.cli.reference > docs/commands.md`; a test compares the two. -->

Results go to standard output, progress and notes to standard error. Every reading command takes
`--json`, which is strict JSON (what is not a finite number is `null`). `NO_COLOR` is respected.
`--debug` may stand anywhere and shows tracebacks; without it every error is one line.
`search --install-completion` sets up completion in your shell.

## Exit codes

| code | meaning |
|---|---|
"""


def reference() -> str:
    """The whole page as Markdown."""
    codes = "".join(f"| {code} | {what} |\n" for code, what in EXIT_CODES.items())
    return HEADER + codes + "".join(_sections("search", command_tree()))


def _sections(path: str, command: Any) -> Iterator[str]:
    for name, child in commands_of(command).items():
        if hasattr(child, "commands"):
            yield f"\n## {path} {name}\n\n{_plain(child.help)}\n"
            yield from _sections(f"{path} {name}", child)
        else:
            yield _section(f"{path} {name}", child)


def _section(path: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join([path, *(_placeholder(a) for a in arguments), "[OPTIONS]"])
    text = f"\n## {path}\n\n{_plain(command.help)}\n\n    {usage}\n"
    if arguments or options:
        text += "\n| | meaning | default |\n|---|---|---|\n"
        text += "".join(f"| {_cells(p)} |\n" for p in [*arguments, *options])
    return text


def _cells(param: Any) -> str:
    if param.param_type_name == "argument":
        name = f"`{_placeholder(param)}`"
    else:
        forms = ", ".join(f"`{form}`" for form in [*param.opts, *param.secondary_opts])
        name = forms if param.is_flag else f"{forms} `{_value_name(param)}`"
    variable = f" (environment: `{param.envvar}`)" if param.envvar else ""
    return f"{name} | {_plain(param.help)}{variable} | {_default(param)}".replace("\n", " ")


def _placeholder(param: Any) -> str:
    name = param.metavar or str(param.name).upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _value_name(param: Any) -> str:
    if param.metavar:
        return str(param.metavar)
    choices = getattr(param, "choices", None)
    return "|".join(choices) if choices else str(param.name).upper()


def _default(param: Any) -> str:
    if param.required:
        return "required"
    if param.default in (None, False, (), []):
        return ""
    return f"`{param.default}`"


def _plain(text: str | None) -> str:
    return re.sub(r"[ \t]+", " ", (text or "").strip()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
