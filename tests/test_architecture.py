"""The direction of imports, what an import costs, and where the boundaries of the rooms lie."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = ("mixers", "search", "service")


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a file imports anywhere, inside functions included."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        rooms |= {name.partition(".")[0] for name in names} & set(ORDER)
    return rooms


@pytest.mark.parametrize("room", ORDER)
def test__imports__each_file_of_a_room__reach_no_later_room(room: str) -> None:
    allowed = set(ORDER[: ORDER.index(room) + 1])
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    wrong = {
        str(file.relative_to(ROOT)): sorted(imported_rooms(file) - allowed)
        for file in files
        if imported_rooms(file) - allowed
    }
    assert wrong == {}


def test__import_linter__planted_import__is_refused(tmp_path: Path) -> None:
    # The gate runs lint-imports on the checkout; here it must see a wrong import in a copy.
    for room in ORDER:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("")
    (tmp_path / "mixers" / "early.py").write_text("import search\n")
    settings = (ROOT / "pyproject.toml").read_text()
    start = settings.index("[tool.importlinter]")
    end = settings.index("[tool.pytest.ini_options]")
    layers_only = settings[start:end].split("[[tool.importlinter.contracts]]")[:2]
    (tmp_path / "pyproject.toml").write_text("[[tool.importlinter.contracts]]".join(layers_only))
    command = "from importlinter.cli import lint_imports_command as run; run()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, '.'); {command}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mixers is not allowed to import search" in done.stdout


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("mixers", {"torch", "pydantic", "transformers"}),
        ("mixers.model", {"optuna", "pytorch_lightning", "sqlalchemy", "fastapi", "typer"}),
        ("search", {"torch", "optuna", "sqlalchemy", "pytorch_lightning", "plotly"}),
        ("search.slots.slot", {"torch", "pytorch_lightning", "optuna", "sqlalchemy"}),
        ("service", {"fastapi", "torch"}),
    ],
)
def test__import__module__stays_light(module: str, forbidden: set[str]) -> None:
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not forbidden & set(done.stdout.split())
