"""One device among the training processes of a machine: shared to train, alone to be timed.

Two files per device are locked with ``flock``, which the kernel undoes when a process dies. Whoever
trains shares the *device*. Whoever measures closes the *gate* first and then waits for the device:
a training looks at the gate at its step boundaries, lets go of the device and waits outside. So
those who train cannot starve the one who measures, and nobody waits at the gate with the device in
hand. Every wait has an end: a process that is stuck costs another one that long once, and makes its
figure less exact.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

MEASURE_WAIT_S = 60.0
TRAIN_WAIT_S = 300.0
LOOK_S = 0.005

SHARED, ALONE = fcntl.LOCK_SH, fcntl.LOCK_EX


class DeviceLease:
    """A share in one device, from the first step of a trial to its measurement.

    Where the files cannot be made or locked nobody waits, and no figure counts as measured alone.

    Args:
        device: what the device is called on this machine, by every process alike.
        folder: where the files lie; default: one folder per user for temporary files.
        clock: monotonic seconds.
        measure_wait_s: how long to wait for the device alone.
        train_wait_s: how long to wait while somebody else has it alone.
    """

    def __init__(
        self,
        device: str,
        folder: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        measure_wait_s: float = MEASURE_WAIT_S,
        train_wait_s: float = TRAIN_WAIT_S,
    ) -> None:
        self.folder = folder or shared_folder()
        self.name = device.replace(":", "-")
        self.clock = clock
        self.measure_wait_s = measure_wait_s
        self.train_wait_s = train_wait_s
        self._files: list[int] = []
        self._waits = True

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for part in ("gate", "device"):
                self._files.append(self._open(part))
                take(self._files[-1], SHARED)
        except OSError:
            self._close()
        else:
            self._share(lambda: False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def give_way(self, settle: Callable[[], object], is_over: Callable[[], bool]) -> bool:
        """Lets a process go first that wants to measure; says whether there was one.

        Costs two system calls where there is none.

        Args:
            settle: waits until the device has done what this process gave it.
            is_over: ends the waiting early.
        """
        if not (self._files and self._waits):
            return False
        gate, device = self._files
        if take(gate, SHARED):
            let_go(gate)
            return False
        settle()
        let_go(device)
        self._share(is_over)
        return True

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        """Has the device alone for a block; afterwards this process has no share in it any more.

        Yields:
            Whether nobody else has it; False when that could not be had in time.
        """
        if not self._files:
            yield False
            return
        gate, device = self._files
        let_go(device)
        end = self.clock() + self.measure_wait_s
        try:
            yield self._wait(gate, ALONE, end) and self._wait(device, ALONE, end)
        finally:
            # In this order: the device is free when the next one comes through the gate.
            let_go(device)
            let_go(gate)

    def _share(self, is_over: Callable[[], bool]) -> None:
        gate, device = self._files
        end = self.clock() + self.train_wait_s
        let_go(gate)
        if not self._wait(gate, SHARED, end, is_over) and self.clock() >= end:
            self._waits = False
        take(device, SHARED)
        let_go(gate)

    def _wait(
        self, file: int, how: int, end: float, is_over: Callable[[], bool] = lambda: False
    ) -> bool:
        while not take(file, how):
            if is_over() or self.clock() >= end:
                return False
            time.sleep(LOOK_S)
        return True

    def _close(self) -> None:
        for file in self._files:
            os.close(file)
        self._files = []

    def _open(self, part: str) -> int:
        return os.open(self.folder / f"{self.name}.{part}.lock", os.O_RDWR | os.O_CREAT, 0o600)


def shared_folder() -> Path:
    """Return where the files of this user's processes lie."""
    return Path(tempfile.gettempdir()) / f"mixsearch-{os.getuid()}"


def take(file: int, how: int) -> bool:
    """Takes a lock if that is possible at once; says whether it was.

    Raises:
        OSError: files cannot be locked there.
    """
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def let_go(file: int) -> None:
    """Gives a lock back, if it was taken."""
    fcntl.flock(file, fcntl.LOCK_UN)


def machine_name(device: str) -> str:
    """What a device is called on its machine, whatever number it has in this process.

    Args:
        device: ``cpu`` or ``cuda:i`` as torch counts in this process.
    """
    if not device.startswith("cuda"):
        return device
    import torch

    return f"cuda-{torch.cuda.get_device_properties(device).uuid}"
