"""The wheel alone, outside the checkout, gives the three jobs of the command."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tiny_run import own_folders, tiny

ROOT = Path(__file__).parents[2]
PACKED = ("mixers", "search", "service", "pyproject.toml", "README.md", "LICENSE")


def run(*words: str | Path, cwd: Path, **variables: str) -> str:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SEARCH_STORE")}
    done = subprocess.run(
        words, cwd=cwd, env=kept | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has our wheel, and only the dependencies of the one that runs us."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in PACKED:
        origin = ROOT / name
        if origin.is_dir():
            shutil.copytree(origin, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, source / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
    run(*build, source, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    purelib = Path(
        run(
            python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
        ).strip()
    )
    # A path line makes packages importable but runs no hooks, so the editable install stays out.
    (purelib / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    run(*pip, wheel, cwd=folder)
    return folder / "env" / "bin"


def test__wheel__installed_elsewhere__lists_trains_and_queries(
    installed: Path, tmp_path: Path
) -> None:
    where = "import mixers, search, service; print(mixers.__file__, search.__file__)"
    files = run(installed / "python", "-c", where, cwd=tmp_path).split()
    assert all(Path(file).is_relative_to(installed.parent) for file in files)

    program = installed / "search"
    kinds = run(program, "mixers", "list", cwd=tmp_path)
    assert all(kind in kinds for kind in ("attention", "sepconv", "bproj", "hardmax_shift"))
    variables = own_folders(tmp_path)
    run(program, "run", "--budget", "1", *tiny(tmp_path), cwd=tmp_path, **variables)
    sql = "SELECT state, params FROM trials_flat"
    answer = json.loads(run(program, "query", sql, "--json", cwd=tmp_path, **variables))
    assert [row["state"] for row in answer] == ["completed"]
