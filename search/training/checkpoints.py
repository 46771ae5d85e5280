"""Checkpoints of one training as files: written whole or not at all, read only when sound.

A checkpoint is one zip archive with two entries: ``facts.json``, plain values, and ``tensors.pt``,
tensors that ``torch.load`` reads with ``weights_only``, so that no file can run code. It is written
beside, flushed to the disk and renamed. The newest and the newest but one stay; a truncated or
damaged one gives way to the one before, and one of another training is never read.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import torch

FORMAT = 1
KEPT = 2
FACTS, TENSORS = "facts.json", "tensors.pt"
DAMAGED = (ValueError, KeyError, EOFError, zipfile.BadZipFile, pickle.UnpicklingError)
"""What reading a file raises whose content is not a checkpoint of this training."""


PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, bool, int, float, str, bytes, type(None)})
DICTS, SEQUENCES = frozenset({dict, OrderedDict}), frozenset({list, tuple})


class NotPlainError(ValueError):
    """A checkpoint would hold objects, which reading refuses since they could run code."""


@dataclass(frozen=True)
class Checkpoint:
    """A training as it stood after ``step`` steps.

    ``facts`` are JSON values, ``tensors`` is a tree of dicts and lists of tensors and numbers.
    """

    step: int
    facts: Mapping[str, Any]
    tensors: Mapping[str, Any]


def save(folder: Path, key: str, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint and removes all but the newest two.

    Args:
        folder: The trial's own folder; made when it is missing.
        key: Names the training.
        checkpoint: What to keep; tensors may be on any device.

    Raises:
        OSError: It could not be written; what was there before is as it was.
        NotPlainError: It holds other things than tensors and plain values.
    """
    refuse_objects(checkpoint.tensors, ())
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"step-{checkpoint.step:09d}-{mark(key)}.zip"
    # Two processes may write here when one is slow to learn that it was replaced.
    beside = folder / f"{target.name}.{os.getpid()}.part"
    try:
        with beside.open("wb") as file:
            write(file, key, checkpoint)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    flush_folder(folder)
    tidy(folder, key)
    return target


def refuse_objects(tree: object, path: tuple[object, ...]) -> None:
    """Refuses what could be written but not be read again.

    Raises:
        NotPlainError: Names the first such thing by its path.
    """
    kind = type(tree)
    parts: Iterable[tuple[object, object]] = ()
    if kind in DICTS:
        parts = cast("dict[object, object]", tree).items()
    elif kind in SEQUENCES:
        parts = enumerate(cast("list[object]", tree))
    elif kind not in PLAIN:
        place = ".".join(map(str, path))
        raise NotPlainError(f"{place} is a {kind.__module__}.{kind.__qualname__}, not a tensor")
    for name, part in parts:
        refuse_objects(part, (*path, name))


def latest(
    folder: Path, key: str, *, warn: Callable[[str], None] = lambda text: None
) -> Checkpoint | None:
    """Returns the newest sound checkpoint of a training, on the CPU; None where there is none.

    Args:
        folder: The trial's folder; it may be missing.
        key: Names the training; what was saved under another key is not read.
        warn: Told of each damaged checkpoint, in words; it is removed.
    """
    for path in reversed(saved_files(folder, key)):
        try:
            return read(path, key)
        except (OSError, RuntimeError, *DAMAGED) as error:
            what = str(error).splitlines()[0] if str(error) else type(error).__name__
            warn(f"checkpoint {path.name} cannot be used ({what}); the one before is tried")
            if isinstance(error, DAMAGED):
                with contextlib.suppress(OSError):
                    path.unlink()
    return None


def saved_files(folder: Path, key: str) -> list[Path]:
    """Returns the files of a training's checkpoints by rising step."""
    return sorted(folder.glob(f"step-*-{mark(key)}.zip"))


def mark(key: str) -> str:
    """Returns the part of a file's name that tells trainings apart."""
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def write(file: IO[bytes], key: str, checkpoint: Checkpoint) -> None:
    """Writes the archive into an open file.

    Raises:
        OSError: The file took no more.
    """
    head = {"format": FORMAT, "key": key, "step": checkpoint.step, "facts": checkpoint.facts}
    # Weights do not compress; a stored entry is still protected by its checksum.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(FACTS, json.dumps(head, allow_nan=False))
        with archive.open(TENSORS, "w", force_zip64=True) as entry:
            sink = Sink(entry)
            torch.save(checkpoint.tensors, cast(IO[bytes], sink))
            sink.finish()


def read(path: Path, key: str) -> Checkpoint:
    """Reads one checkpoint.

    Raises:
        ValueError: It is of another training or format.
        OSError, KeyError, RuntimeError, zipfile.BadZipFile: It is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        head = json.loads(archive.read(FACTS))
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']}, this version reads {FORMAT}")
        if head["key"] != key:
            raise ValueError("it belongs to another training")
        content = io.BytesIO(archive.read(TENSORS))
    tensors = torch.load(content, map_location="cpu", weights_only=True)
    return Checkpoint(head["step"], head["facts"], tensors)


class Sink:
    """Passes on what torch writes; an error waits until torch is done, which cannot bear one."""

    def __init__(self, entry: IO[bytes]) -> None:
        self.entry = entry
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        """Writes unless something went wrong before."""
        if self.error is None:
            try:
                self.entry.write(data)
            except OSError as error:
                self.error = error
        return len(data)

    def flush(self) -> None:
        """Has nothing of its own to flush."""

    def finish(self) -> None:
        """Says whether everything was written.

        Raises:
            OSError: It was not.
        """
        if self.error is not None:
            raise self.error


def flush_folder(folder: Path) -> None:
    """Makes a rename outlast a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tidy(folder: Path, key: str) -> None:
    """Removes all but the newest checkpoints, and what interrupted writes left."""
    for path in [*saved_files(folder, key)[:-KEPT], *folder.glob("*.part")]:
        with contextlib.suppress(OSError):
            path.unlink()
