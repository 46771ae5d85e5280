"""A folder cache that is safe with several processes at once and notices damage.

An entry is a folder of files and a manifest with their sha256. It is written under a temporary name
and renamed, so it is complete or absent; it is checked on every read and built again if a file is
damaged. No pickle: entries hold npy and JSON files only.
"""

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from search.errors import InputError

T = TypeVar("T")

ATTEMPTS = 10
MANIFEST = "manifest.json"
TEMPORARY = ".writing-"
STALE_S = 24 * 3600.0


def default_cache_dir() -> Path:
    """Return the folder named by SEARCH_CACHE_DIR, else ~/.cache/mixsearch."""
    named = os.environ.get("SEARCH_CACHE_DIR")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "mixsearch"


def source_version(*files: str) -> str:
    """Return a hash over source files, so that an entry of other code is never read."""
    total = hashlib.sha256()
    for file in files:
        total.update(Path(file).read_bytes())
    return total.hexdigest()


def cached(root: Path, name: str, build: Callable[[Path], None], load: Callable[[Path], T]) -> T:
    """Return `load` of the entry `root/name`, building it first if it is absent or damaged.

    Two processes may build the same entry at once; one of the two equal results stays.

    Args:
        root: The cache folder; made if needed.
        name: The entry; must name everything its content depends on.
        build: Fills the empty folder it is given.
        load: Reads a complete entry.

    Raises:
        InputError: The cache folder cannot be written.
    """
    entry = root / name
    for _ in range(ATTEMPTS):
        if intact(entry):
            try:
                value = load(entry)
            except FileNotFoundError:
                continue  # another process replaced the entry between check and read
            if intact(entry):  # and nothing changed it meanwhile
                return value
            continue
        try:
            store(root, entry, build)
        except OSError as error:
            raise InputError(
                f"cache folder {root}: cannot be written: {error.strerror or error}; "
                "set SEARCH_CACHE_DIR to a folder with space"
            ) from None
    return load(entry)


def intact(entry: Path) -> bool:
    """Whether the entry is there with all files as they were written."""
    try:
        manifest = json.loads((entry / MANIFEST).read_text(encoding="utf-8"))
        return all(file_hash(entry / file) == digest for file, digest in manifest.items())
    except (OSError, ValueError, AttributeError):
        return False


def store(root: Path, entry: Path, build: Callable[[Path], None]) -> None:
    """Build into a temporary folder and rename it to `entry`, putting a damaged one aside."""
    root.mkdir(parents=True, exist_ok=True)
    remove_stale(root)
    folder = temporary(root)
    try:
        build(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        manifest = {path.relative_to(folder).as_posix(): file_hash(path) for path in files}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        publish(folder, entry)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, entry: Path) -> None:
    """Rename `folder` to `entry` unless an intact entry of another process is there already."""
    if entry.exists():
        if intact(entry):
            return
        aside = temporary(entry.parent)
        try:
            entry.rename(aside / "damaged")
        except FileNotFoundError:
            pass  # another process put it aside first
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    try:
        folder.rename(entry)
    except OSError:
        if not entry.exists():
            raise


def temporary(root: Path) -> Path:
    """Make a folder of an unused name; unlike `tempfile`'s, users who share a cache can read it."""
    folder = root / f"{TEMPORARY}{uuid.uuid4().hex}"
    folder.mkdir()
    return folder


def remove_stale(root: Path) -> None:
    """Delete temporary folders that a killed process left behind more than a day ago."""
    for folder in root.glob(f"{TEMPORARY}*"):
        try:
            if time.time() - folder.stat().st_mtime > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:
            continue


def file_hash(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
