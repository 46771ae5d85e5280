import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from search.data.cache import MANIFEST, TEMPORARY, cached, default_cache_dir
from search.errors import InputError


class Builder:
    """Counts how often an entry is built."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, folder: Path) -> None:
        self.count += 1
        (folder / "deep").mkdir()
        (folder / "deep" / "value.json").write_text(json.dumps({"built": self.count}))


def load(folder: Path) -> int:
    built: int = json.loads((folder / "deep" / "value.json").read_text())["built"]
    return built


def test__cached__second_call__reads_the_first(tmp_path: Path) -> None:
    build = Builder()
    assert [cached(tmp_path / "c", "x", build, load) for _ in range(3)] == [1, 1, 1]
    assert build.count == 1
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["x"]


@pytest.mark.parametrize("damage", ["truncated", "changed", "missing", "no manifest", "a file"])
def test__cached__damaged_entry__built_again(tmp_path: Path, damage: str) -> None:
    build = Builder()
    cached(tmp_path, "x", build, load)
    value = tmp_path / "x" / "deep" / "value.json"
    match damage:
        case "truncated":
            value.write_bytes(value.read_bytes()[:5])
        case "changed":
            value.write_text(json.dumps({"built": 7}))
        case "missing":
            value.unlink()
        case "no manifest":
            (tmp_path / "x" / MANIFEST).unlink()
        case "a file":
            (tmp_path / "x").rename(tmp_path / "gone")
            (tmp_path / "x").write_text("in the way")
    assert cached(tmp_path, "x", build, load) == 2
    assert cached(tmp_path, "x", build, load) == 2


def test__cached__build_fails__nothing_is_left(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise InputError("no text")

    with pytest.raises(InputError, match="no text"):
        cached(tmp_path, "x", fail, load)
    assert list(tmp_path.iterdir()) == []


def test__cached__folder_cannot_be_made__one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="SEARCH_CACHE_DIR"):
        cached(tmp_path / "file" / "cache", "x", Builder(), load)


def test__cached__leftovers_of_a_killed_process__old_ones_go(tmp_path: Path) -> None:
    old, new = tmp_path / f"{TEMPORARY}old", tmp_path / f"{TEMPORARY}new"
    for folder in (old, new):
        folder.mkdir()
    import os

    os.utime(old, (time.time() - 2 * 86400,) * 2)
    cached(tmp_path, "x", Builder(), load)
    assert not old.exists()
    assert new.exists()


RACE = """
import pathlib, sys, time
from search.data.cache import cached
root = pathlib.Path(sys.argv[1])
def build(folder):
    time.sleep(0.2)
    (folder / "value").write_text("right" * 10_000)
for _ in range(20):
    assert cached(root, "x", build, lambda f: (f / "value").read_text()) == "right" * 10_000
    if sys.argv[2] == "damage":
        (root / "x" / "value").write_text("wrong")
"""


def test__cached__several_processes_and_one_that_damages__all_read_right(tmp_path: Path) -> None:
    kinds = ["read", "read", "damage"]
    processes = [
        subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path), kind], stderr=subprocess.PIPE)
        for kind in kinds
    ]
    errors = [process.communicate(timeout=60)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    assert not list(tmp_path.glob(f"{TEMPORARY}*"))


def test__default_cache_dir__variable_set__is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_CACHE_DIR", str(tmp_path))
    assert default_cache_dir() == tmp_path
    monkeypatch.delenv("SEARCH_CACHE_DIR")
    assert default_cache_dir() == Path.home() / ".cache" / "mixsearch"
