"""Where a trial ran: versions, machine, device, seed, commit; text beside every number."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import subprocess
from pathlib import Path

from search.devices import Device, usable_cores

_DISTRIBUTIONS = ("mixsearch", "torch", "pytorch-lightning", "transformers", "tokenizers", "numpy")


LATENCY = "latency"
"""The fact that times were measured while others used the device; it is there only then."""


COMPILED = "compiled"
"""The fact that training steps were compiled, and by what; it is there only then."""
BACKEND = "inductor"


def environment(
    *,
    device: Device,
    threads: int,
    seed: int,
    precision: str,
    alone: bool = True,
    compiled: bool = False,
) -> dict[str, str]:
    """The facts that a reader needs to judge or repeat a trial's numbers, as text by name."""
    facts = {
        **_process_facts(),
        "device": device.name,
        "device_model": device.model or _processor(),
        "threads": str(threads),
        "seed": str(seed),
        "precision": precision,
    }
    if compiled:
        facts[COMPILED] = BACKEND
    if not alone:
        facts[LATENCY] = "measured beside other trainings"
    if device.kind == "cuda":
        import torch

        facts["cuda"] = str(torch.version.cuda or torch.version.hip)
    return facts


@functools.cache
def _process_facts() -> dict[str, str]:
    facts = {
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "cores": str(usable_cores()),
    }
    for name in _DISTRIBUTIONS:
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            facts[name] = "not installed"
    facts["commit"] = commit()
    return facts


@functools.cache
def commit() -> str:
    """The commit of the checkout this package runs from, ``+changes`` if it was edited, else "".

    An installed package has no commit; its version says what it is.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    head = _git(root, "rev-parse", "HEAD")
    edited = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+changes" if head and edited else head


def _git(root: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            # Without the lock: killed here, git would leave it behind for everybody.
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


@functools.cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
