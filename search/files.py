"""Where the files that belong to a store lie: checkpoints of running trials, results in waiting."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from search.settings import Settings


class StorePlace(Protocol):
    """Where a store lies, as far as its files are concerned."""

    @property
    def files_name(self) -> str:
        """Name of its folder among those of other stores."""

    @property
    def path(self) -> Path | None:
        """The file, for SQLite at hand."""


def files_name(label: str) -> str:
    """Returns the name of the folder of a store's files: the same for all who write its place so.

    Args:
        label: The store's place, without its password.
    """
    return hashlib.sha256(label.encode()).hexdigest()[:16]


class Files:
    """The folder of a store's files.

    Args:
        root: The folder; made when it is first needed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def of(cls, address: StorePlace, local: Settings) -> Files:
        """Returns the folder: SEARCH_FILES_DIR, else beside an SQLite file, else in the cache.

        Workers on several machines go on from each other's checkpoints where SEARCH_FILES_DIR is a
        folder that they share; elsewhere a trial that moves begins anew.
        """
        if local.files_dir is not None:
            return cls(local.files_dir / address.files_name)
        if address.path is not None:
            path = address.path.absolute()
            return cls(path.with_name(f"{path.name}.files"))
        return cls(local.cache_dir / "files" / address.files_name)

    @property
    def checkpoints(self) -> Path:
        """Holds one folder per trial."""
        return self.root / "checkpoints"

    @property
    def spool(self) -> Path:
        """Holds results that the store could not take yet."""
        return self.root / "spool"

    def checkpoints_of(self, trial_id: int) -> Path:
        """The folder of a trial's checkpoints."""
        return self.checkpoints / f"trial-{trial_id}"

    def forget_checkpoints(self, trial_id: int) -> None:
        """Deletes the checkpoints of a trial, if there are any."""
        shutil.rmtree(self.checkpoints_of(trial_id), ignore_errors=True)
