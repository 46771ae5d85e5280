"""Installs the packages of tests/plugins into folders and runs Python with them, for real."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

PLUGINS = Path(__file__).parents[1] / "plugins"
EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


def lay_out(package: str, site: Path) -> Path:
    """Put a package of tests/plugins into `site` as pip would: modules and a .dist-info folder."""
    site.mkdir(parents=True, exist_ok=True)
    source = PLUGINS / package
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    for module in source.glob("*.py"):
        shutil.copy(module, site)
    name, version = project["name"], project["version"]
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{kind} = {target}" for kind, target in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return site


def pip_install(source: Path, site: Path, scratch: Path) -> Path:
    """Install a package folder into `site` with pip, building in `scratch`."""
    copy = scratch / source.name
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site), str(copy),
        ],
        check=True,
        capture_output=True,
        text=True,
    )  # fmt: skip
    return site


def run_python(
    code: str, *sites: Path, cwd: Path | None = None, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter that sees `sites`; returns its exit code and output."""
    path = os.pathsep.join(str(site) for site in sites)
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ok(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a run that must have worked."""
    assert done.returncode == 0, done.stderr
    return done.stdout
