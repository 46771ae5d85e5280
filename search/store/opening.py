"""Whether a file may be opened as a store: one clear line where it may not."""

import os
import re
from pathlib import Path

from search.errors import NothingThereError, StoreError
from search.store.address import ANOTHER, Address

ESCAPE = re.compile(r"\\([0-7]{3})")  # how /proc/mounts writes a blank
LEAST_PAGE_BYTES = 512
MOUNTS = Path("/proc/mounts")
NETWORK_TYPES = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "ocfs2", "orangefs", "panfs", "smb3", "smbfs", "vboxsf", "virtiofs"),
        *("wekafs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs"),
        "fuse.sshfs",
    }
)
WAYS_OUT = (
    "use PostgreSQL (--store postgresql://...), or keep the file on a local disk and let other "
    "machines work through 'search serve' there ('search worker --server URL')"
)


def check_file(address: Address, *, create: bool, mounts: str | None = None) -> None:
    """Look at an SQLite file before it is opened; changes nothing.

    Args:
        address: The file.
        create: Whether a missing file will be made.
        mounts: Text in the form of /proc/mounts; the machine's own by default.

    Raises:
        NothingThereError: There is no such file, and none is to be made.
        StoreError: A folder, no regular file, too short, or on a network file system.
    """
    path = address.path
    if path is None:
        return
    label = address.label
    try:
        if path.is_dir():
            raise StoreError(
                f"{label}: is a folder; name a file in it, such as {path / 'search.db'}"
            )
        exists = path.exists()
        if not exists and not create:
            raise NothingThereError(
                f"{label}: there is no store", command=f"search run makes one, {ANOTHER}"
            )
        if not path.parent.is_dir():
            raise StoreError(f"{label}: there is no folder {path.parent}; make it first")
        if not exists and not os.access(path.parent, os.W_OK | os.X_OK):
            raise StoreError(
                f"{label}: no file can be made in {path.parent}; check its permissions",
                command=ANOTHER,
            )
        # Its content is left to SQLite: opening and closing the file here would give up the locks
        # that this process has on it through a store that is open already.
        if exists and not path.is_file():
            raise StoreError(f"{label}: is not a regular file", command=ANOTHER)
        # SQLite would take the beginning of a page for an empty database; a shortest one is a page.
        if exists and 0 < path.stat().st_size < LEAST_PAGE_BYTES:
            raise StoreError(f"{label}: is not an SQLite database", command=ANOTHER)
    except OSError as error:
        raise StoreError(f"{label}: cannot be read: {error.strerror or error}") from error
    kind = file_system(path, read_mounts() if mounts is None else mounts)
    if kind in NETWORK_TYPES:
        raise StoreError(
            f"{label}: lies on a network file system ({kind}), where SQLite loses data; {WAYS_OUT}"
        )


def read_mounts() -> str:
    """Return what is mounted where; empty where the system does not say."""
    try:
        return MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def file_system(path: Path, mounts: str) -> str | None:
    """Return the type of the file system that holds a path, after links are followed.

    Args:
        path: It need not exist.
        mounts: Text in the form of /proc/mounts; of equal mount points the last one counts.
    """
    resolved = path.resolve()
    best: tuple[int, str | None] = (-1, None)
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(ESCAPE.sub(lambda code: chr(int(code[1], 8)), fields[1]))
        if resolved.is_relative_to(point) and len(point.parts) >= best[0]:
            best = (len(point.parts), fields[2])
    return best[1]
