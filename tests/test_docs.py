"""What the pages show works: Python blocks run, shell lines name what exists, no mixer is missing.

The blocks of a page run one after the other in one folder, as a reader would type them. Blocks that
show a file of the project must be that file. A block with `...` for a body is an outline: it must
parse, and the names of ours in it must exist.
"""

import ast
import importlib
import importlib.util
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import pytest
import store_factory

import mixers
from search.cli.app import command_tree
from search.cli.group import commands_of
from search.store.repo import Store

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]
BLOCK = re.compile(r"^([ ]*)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(search [a-z][^`]*)`")
OURS = ("mixers", "search", "service")
GLOBAL_OPTIONS = {"--debug", "--help"}  # may stand behind any command
OTHER_PROGRAMS = {
    "curl",
    "docker",
    "docker-compose",
    "sbatch",
    "pip",
    "pytest",
    "git",
    "uv",
    "createdb",
    "pg_dump",
    "psql",
    "export",
}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(text) for _, kind, text in found if kind == language]


def pages_with(language: str) -> list[Any]:
    return [pytest.param(page, id=name_of(page)) for page in PAGES if blocks(page, language)]


def is_outline(tree: ast.Module) -> bool:
    bodies = (
        node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    return any(
        isinstance(body[-1], ast.Expr)
        and isinstance(body[-1].value, ast.Constant)
        and body[-1].value.value is ...
        for body in bodies
    )


def missing_names(tree: ast.Module) -> list[str]:
    """Attributes of our packages that do not exist, such as `mixers.regster`."""
    return [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in OURS
        and not hasattr(importlib.import_module(node.value.id), node.attr)
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with a store, as somebody has who read the quickstart."""
    monkeypatch.chdir(tmp_path)
    with Store.open("sqlite:///search.db") as store:
        store_factory.fill(store, "demo")
    return tmp_path


@pytest.mark.parametrize("page", pages_with("python"))
def test__page__python_blocks__run_as_they_stand(page, folder):
    files = {file.read_text(encoding="utf-8").strip() for file in ROOT.glob("examples/**/*.py")}
    names: dict[str, Any] = {"__name__": "__page__"}
    for text in blocks(page, "python"):
        if text.strip() in files:
            continue
        tree = ast.parse(text)
        assert missing_names(tree) == []
        # A method that stands alone belongs to the class that the text around it speaks of.
        lone = all(isinstance(node, ast.FunctionDef) for node in tree.body) and "self" in text
        if not is_outline(tree) and not lone:
            exec(compile(tree, name_of(page), "exec"), names)


@pytest.mark.parametrize("page", pages_with("sh"))
def test__page__shell_blocks__name_what_exists(page):
    for text in blocks(page, "sh"):
        for line in text.replace("\\\n", " ").splitlines():
            check_line(line)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test__page__commands_in_the_text__exist(page):
    text = page.read_text(encoding="utf-8")
    indented = re.findall(r"^    (search [a-z].*)$", text, re.MULTILINE)
    for line in [*SPAN.findall(text), *indented]:
        check_line(line)


@pytest.mark.parametrize(
    "line",
    [
        "search runs",
        "search run --bugdet 9",
        "search mixers lst",
        "SEARCH_THREADS=1 search run | search shwo",
        "make tset",
        "python -m search.cli.referense",
        "python -c 'import'",
        "frobnicate",
    ],
)
def test__check_line__slip_of_the_hand__is_seen(line):
    with pytest.raises((AssertionError, SyntaxError)):
        check_line(line)


def check_line(line: str) -> None:
    """Every program, command, option, target and module of a shell line must exist."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "|"]:
        if set(word) <= set("|&;"):
            check_command(words)
            words = []
        else:
            words.append(word)


def check_command(words: list[str]) -> None:
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if not words:
        return
    program, *rest = words
    if program == "search":
        check_search(rest)
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(rest) <= set(targets), words
    elif program in ("python", "python3"):
        if rest[0] == "-c":
            ast.parse(rest[1])
        elif rest[0] == "-m":
            assert importlib.util.find_spec(rest[1]) is not None, words
        else:
            assert (ROOT / rest[0]).is_file(), words
    else:
        assert program in OTHER_PROGRAMS, words


def check_search(words: list[str]) -> None:
    command: Any = command_tree()
    known = {option for param in command.params for option in param.opts}
    path = []
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        there = commands_of(command)
        assert words[0] in there, ["search", *path, *words]
        command = there[words[0]]
        path.append(words[0])
        words = words[1:]
    if path:
        params = command.params
        known = {option for param in params for option in (*param.opts, *param.secondary_opts)}
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert used <= known | GLOBAL_OPTIONS, ["search", *path, *words]


def test__docs__every_built_in_mixer__is_named():
    text = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/*.md"))
    kinds = [kind for kind, info in mixers.available().items() if info.distribution == "mixsearch"]
    assert [kind for kind in kinds if not re.search(rf"\b{kind}\b", text)] == []
