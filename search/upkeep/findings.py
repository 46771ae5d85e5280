"""What an examination finds, and the finding that both of its parts make: room on a disk."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LOW_DISK_BYTES = 1 << 30
NO_DISK_BYTES = 100 << 20

Status = Literal["ok", "warning", "wrong"]


@dataclass(frozen=True)
class Finding:
    """One thing that was examined.

    Attributes:
        topic: What was looked at.
        status: Whether it is as it should be.
        detail: What was found.
        advice: What to do; empty when all is well.
    """

    topic: str
    status: Status
    detail: str
    advice: str = ""


def disk(topic: str, folder: Path) -> Iterator[Finding]:
    """Whether a folder can be written and how much room is left there."""
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{folder}, {free / (1 << 30):.1f} GiB free"
    if not os.access(place, os.W_OK):
        yield Finding(topic, "wrong", f"{folder} cannot be written", "change its permissions")
    elif free < LOW_DISK_BYTES:
        status: Status = "wrong" if free < NO_DISK_BYTES else "warning"
        yield Finding(topic, status, detail, "free some space")
    else:
        yield Finding(topic, "ok", detail)
