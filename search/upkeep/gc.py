"""Frees the files of trials that have ended, by a stated policy; touches nothing else.

Only folders that this program made are looked at: ``checkpoints/trial-<id>`` below the folder of
the store's files. Links are never followed, and whatever else lies there is left alone.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from search.errors import InputError
from search.store.retention import Owner, owners

if TYPE_CHECKING:
    from search.files import Files
    from search.store.repo import Store

Keep = Literal["best", "last", "all"]
FOLDER = re.compile(r"trial-(\d{1,18})")
CHECKPOINT = "step-*.zip"
UNFINISHED = "*.part"
MOST_IDS = 500


@dataclass(frozen=True, kw_only=True)
class Freed:
    """What is removed of one folder.

    Attributes:
        paths: The folder, or files in it.
        size_bytes: Their size.
        study: Name of the study; None for an orphan.
        number: Number of the trial in it; None for an orphan.
        why: The reason, in words.
    """

    paths: tuple[Path, ...]
    size_bytes: int
    study: str | None
    number: int | None
    why: str


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What a collection removed, or would remove.

    Attributes:
        folder: The folder of the store's files.
        freed: What goes.
        left_alone: What lies there and is not ours.
        kept_bytes: Size of what stays.
    """

    folder: Path
    freed: tuple[Freed, ...]
    left_alone: tuple[Path, ...]
    kept_bytes: int

    @property
    def size_bytes(self) -> int:
        """Size of what goes."""
        return sum(one.size_bytes for one in self.freed)


def collect(store: Store, files: Files, keep: Keep = "last", *, dry_run: bool = False) -> Collected:
    """Frees files of ended trials.

    Args:
        store: Knows the trials.
        files: The folder of its files.
        keep: ``all`` keeps every file of a trial that the store has; ``last`` the newest
            checkpoint of each; ``best`` that of the best trial of each study. Trials that are
            reserved, queued or running keep everything in any case.
        dry_run: Only says what would go.

    Raises:
        InputError: The folder of the checkpoints is a link.
    """
    room = files.checkpoints
    if room.is_symlink():
        raise InputError(f"{room}: is a link, and none is followed; name the real folder")
    entries = sorted(room.iterdir()) if room.is_dir() else []
    # The folders are listed before the trials are read, so a new trial is never an orphan.
    ours = {int(match[1]): entry for entry in entries if (match := match_of(entry))}
    known = read_owners(store, list(ours))
    freed = []
    for trial_id, folder in sorted(ours.items()):
        one = plan(folder, known.get(trial_id), keep)
        if one is not None and (dry_run or remove(store, trial_id, one, known.get(trial_id))):
            freed.append(one)
    total = sum(size_of(folder) for folder in ours.values())
    return Collected(
        folder=files.root,
        freed=tuple(freed),
        left_alone=tuple(entry for entry in entries if entry not in ours.values()),
        kept_bytes=total - sum(one.size_bytes for one in freed) if dry_run else total,
    )


def match_of(entry: Path) -> re.Match[str] | None:
    """Returns the match of a trial's folder; None for links, files and other names."""
    return FOLDER.fullmatch(entry.name) if entry.is_dir() and not entry.is_symlink() else None


def read_owners(store: Store, trial_ids: list[int]) -> dict[int, Owner]:
    """Reads the trials of some ids, in portions that every database takes."""
    known: dict[int, Owner] = {}
    with store.reading() as connection:
        for start in range(0, len(trial_ids), MOST_IDS):
            known |= owners(connection, trial_ids[start : start + MOST_IDS])
    return known


def plan(folder: Path, owner: Owner | None, keep: Keep) -> Freed | None:
    """Says what of a trial's folder may go; None where nothing may."""
    if owner is None:
        return freed_of(folder, (folder,), None, "its trial is not in the store")
    if not owner.has_ended:
        return None
    if keep == "best" and not owner.is_best:
        return freed_of(folder, (folder,), owner, f"{owner.state}, and not the best of its study")
    spare = list(folder.glob(UNFINISHED))
    if keep != "all":
        saved = sorted(folder.glob(CHECKPOINT), key=written_at)
        spare += saved[:-1]
    if not spare:
        return None
    return freed_of(folder, tuple(sorted(spare)), owner, f"{owner.state}; older or unfinished")


def freed_of(folder: Path, paths: tuple[Path, ...], owner: Owner | None, why: str) -> Freed:
    """Describes what goes."""
    return Freed(
        paths=paths,
        size_bytes=sum(size_of(path) for path in paths),
        study=owner.study if owner is not None else None,
        number=owner.number if owner is not None else None,
        why=why,
    )


def remove(store: Store, trial_id: int, freed: Freed, owner: Owner | None) -> bool:
    """Removes files while nobody can claim their trial; says whether they went.

    A trial may have been queued again since it was looked at.
    """
    with store.writing(owner.study_id if owner is not None else None) as connection:
        now = owners(connection, [trial_id]).get(trial_id)
        if (now is None) != (owner is None) or (now is not None and not now.has_ended):
            return False
        for path in freed.paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return True


def written_at(path: Path) -> int:
    """Returns when a file was written, in nanoseconds; 0 where it is gone already."""
    try:
        return path.lstat().st_mtime_ns
    except FileNotFoundError:
        return 0


def size_of(path: Path) -> int:
    """Returns the bytes of a file, or of all files below a folder.

    Links are not followed and count as nothing, as does what a worker removes meanwhile.
    """
    try:
        if path.is_symlink() or not path.is_dir():
            return 0 if path.is_symlink() else path.lstat().st_size
        return sum(size_of(child) for child in path.iterdir())
    except FileNotFoundError:
        return 0
