"""Which devices there are, and how training processes are placed on them.

All decisions are pure functions of plain facts, so they are tested with made-up machines. The facts
themselves come from torch in a process of their own (``python -m search.devices``), because
the process that plans and keeps the books never imports torch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from search.errors import InputError

Precision = Literal["32", "bf16"]


@dataclass(frozen=True)
class Device:
    """One accelerator as torch names it, or the processor itself.

    ``bf16`` says that the device computes bfloat16 natively; emulation does not count.
    """

    name: str
    kind: Literal["cpu", "cuda"]
    model: str = ""
    memory_bytes: int = 0
    bf16: bool = False


@dataclass(frozen=True)
class Placement:
    """Where one training process runs, and with how many threads."""

    device: str
    threads: int


CPU = Device(name="cpu", kind="cpu")


def choose_precision(requested: Literal["auto", "32", "bf16"], device: Device) -> Precision:
    """The number format of a training: bfloat16 autocast on GPUs that have it, else float32.

    Asked for by name, ``bf16`` also runs on a processor, where autocast is correct but slow.

    Raises:
        InputError: bf16 was asked for on a GPU without it.
    """
    if requested == "auto":
        return "bf16" if device.kind == "cuda" and device.bf16 else "32"
    if requested == "bf16" and device.kind == "cuda" and not device.bf16:
        raise InputError(
            f"training.precision: {device.name} ({device.model}) has no bfloat16; use auto or 32"
        )
    return requested


def place(
    devices: Sequence[Device],
    *,
    cores: int,
    workers: int | None = None,
    slots_per_gpu: int = 1,
) -> tuple[Placement, ...]:
    """One slot per GPU, or the processor's cores shared out when there is none.

    Args:
        devices: what is visible, in torch's order.
        cores: processor cores to share; every slot gets ``cores // slots`` threads, at least one.
        workers: number of slots; default ``slots_per_gpu`` for each GPU, or one without GPUs.
        slots_per_gpu: how many small trainings share one GPU.

    Raises:
        InputError: a count is below one, or more slots are asked for than the GPUs may hold.
    """
    for name, count in (("workers", workers), ("slots-per-gpu", slots_per_gpu)):
        if count is not None and count < 1:
            raise InputError(f"--{name} is {count}; it must be at least 1")
    gpus = [device for device in devices if device.kind == "cuda"]
    room = len(gpus) * slots_per_gpu
    if gpus and workers is not None and workers > room:
        raise InputError(
            f"--workers {workers} is more than {len(gpus)} GPU(s) x {slots_per_gpu} slot(s); "
            "use fewer workers or a larger --slots-per-gpu"
        )
    n_slots = workers or room or 1
    threads = max(1, cores // n_slots)
    # Neighbouring slots go to different GPUs, so that fewer workers than slots spread out.
    names = [gpu.name for gpu in gpus] or ["cpu"]
    return tuple(Placement(names[slot % len(names)], threads) for slot in range(n_slots))


def choose_gpus(devices: Sequence[Device], numbers: Sequence[int]) -> tuple[Device, ...]:
    """Returns the GPUs of these numbers.

    Raises:
        InputError: There is no such GPU.
    """
    gpus = {device.name: device for device in devices if device.kind == "cuda"}
    missing = [number for number in numbers if f"cuda:{number}" not in gpus]
    if missing:
        known = ", ".join(name.removeprefix("cuda:") for name in gpus) or "none"
        raise InputError(f"--gpus: there is no GPU {missing[0]} here; there are: {known}")
    return tuple(gpus[f"cuda:{number}"] for number in dict.fromkeys(numbers))


def device_variables(
    device: str, threads: int, outer: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment that shows a training process exactly one device and its share of cores.

    Inside, the one GPU is ``cuda:0`` whatever its number is outside.

    Args:
        device: ``cpu`` or ``cuda:i``, i counted among the GPUs that this process may use.
        threads: threads of the process.
        outer: where ``CUDA_VISIBLE_DEVICES`` says which GPUs may be used and ``OMP_WAIT_POLICY``
            how threads wait; default ``os.environ``.

    Raises:
        InputError: the name is neither, or the GPU is not among those that may be used.
    """
    outer = os.environ if outer is None else outer
    kind, _, number = device.partition(":")
    if device != "cpu" and (kind != "cuda" or not number.isdecimal()):
        raise InputError(f"device {device!r} is unknown; use cpu or cuda:0, cuda:1, ...")
    visible = ""
    if kind == "cuda":
        allowed = outer.get("CUDA_VISIBLE_DEVICES")
        names = [number] if allowed is None else [name.strip() for name in allowed.split(",")]
        index = 0 if allowed is None else int(number)
        if index >= len(names) or not names[index]:
            raise InputError(f"device {device} is hidden by CUDA_VISIBLE_DEVICES={allowed}")
        visible = names[index]
    threads_variables = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {
        # Threads that spin while they wait for each other make a step 20 times slower as soon as
        # another program takes one of their cores.
        "OMP_WAIT_POLICY": outer.get("OMP_WAIT_POLICY", "PASSIVE"),
        "CUDA_VISIBLE_DEVICES": visible,
        "TOKENIZERS_PARALLELISM": "false",
        **dict.fromkeys(threads_variables, str(threads)),
    }


def usable_cores() -> int:
    """Cores that this process may use: its affinity, or a container's quota where that is less."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
        if quota != "max":
            cores = min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return cores


def visible_devices() -> tuple[Device, ...]:
    """The GPUs that torch can use, else the processor, asked of torch in its own process.

    Without a GPU driver on the machine nothing is started and the answer is immediate.
    """
    has_driver = shutil.which("nvidia-smi") or any(
        os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
    )
    if not has_driver or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return (CPU,)
    answer = subprocess.run(
        [sys.executable, "-P", "-m", "search.devices"],
        env={**os.environ, "PYTHONPATH": import_path()},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if answer.returncode != 0:
        return (CPU,)
    return tuple(Device(**facts) for facts in json.loads(answer.stdout.splitlines()[-1]))


def import_path() -> str:
    """A PYTHONPATH with which a new interpreter finds what this one finds, in the same order."""
    return os.pathsep.join(os.getcwd() if entry == "" else entry for entry in sys.path)


def device_facts(name: str) -> Device:
    """The facts of one device, from torch.

    Raises:
        InputError: torch cannot use this device.
    """
    if name == "cpu":
        return CPU
    import torch

    device = torch.device(name)
    if device.type != "cuda" or not torch.cuda.is_available():
        raise InputError(f"device {name}: torch cannot use it here; use cpu")
    properties = torch.cuda.get_device_properties(device)
    return Device(
        name=name,
        kind="cuda",
        model=properties.name,
        memory_bytes=properties.total_memory,
        bf16=_native_bf16(properties.major),
    )


def _native_bf16(major: int) -> bool:
    import torch

    # Compute capability 8.0 brought bfloat16 to NVIDIA's GPUs; AMD's have it in all supported ones.
    return torch.version.hip is not None or major >= 8


def _list_devices() -> list[Device]:
    import torch

    if not torch.cuda.is_available():
        return [CPU]
    return [device_facts(f"cuda:{index}") for index in range(torch.cuda.device_count())]


if __name__ == "__main__":
    sys.stdout.write(json.dumps([asdict(device) for device in _list_devices()]) + "\n")
