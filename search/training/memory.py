"""Memory of this process and its GPU: level, peak, and giving back what is not used."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def resident_bytes() -> int:
    """Memory of this process that is in use now; the peak where the system tells no level."""
    return _status("VmRSS") or _peak_of_process()


def peak_bytes(device: str) -> int:
    """Peak since ``reset_peak``: allocated on the GPU, or resident memory of the process."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    return _status("VmHWM") or _peak_of_process()


def reset_peak(device: str) -> None:
    """Starts a new peak at today's level, where the system can."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)
        return
    with contextlib.suppress(OSError):
        _CLEAR_REFS.write_text("5", encoding="ascii")


def release() -> None:
    """Collects garbage and gives free memory back to the system and the GPU."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def limit_data(limit_bytes: int) -> None:
    """Makes allocations beyond a limit fail in this process, instead of ending the machine's."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _status(name: str) -> int:
    try:
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def _peak_of_process() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
