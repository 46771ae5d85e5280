"""The global random generators of a process: set for a trial, read into and from a checkpoint."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from search.messages import TrialConfig

# Dropout draws from a stream of its own, so that it does not depend on how many numbers the
# initialisation of an architecture took.
DROPOUT_STREAM = 1 << 32


@contextlib.contextmanager
def process_settings(config: TrialConfig) -> Iterator[None]:
    """Seeds and threads of one trial; the caller's own come back afterwards."""
    threads = torch.get_num_threads()
    python, numpy = random.getstate(), np.random.get_state()
    device = torch.device(config.device)
    gpus = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        # Mixers of other people may draw from these.
        random.seed(config.seed)
        np.random.seed(config.seed % 2**32)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            random.setstate(python)
            np.random.set_state(numpy)


def random_states(device: torch.device) -> dict[str, Any]:
    """Returns the states of Python's, NumPy's and torch's generators, that of a GPU included."""
    version, python, gauss = random.getstate()
    kind, numbers, position, has_gauss, cached = np.random.get_state(legacy=True)
    states: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "python": [version, list(python), gauss],
        "numpy": [kind, [int(n) for n in numbers], int(position), int(has_gauss), float(cached)],
    }
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_states(states: Mapping[str, Any], device: torch.device) -> None:
    """Sets the generators to what ``random_states`` gave.

    A training that began on another kind of device has no state for this one: its dropout then
    draws from where the generator stands.
    """
    torch.set_rng_state(states["torch"])
    version, python, gauss = states["python"]
    random.setstate((version, tuple(python), gauss))
    kind, numbers, position, has_gauss, cached = states["numpy"]
    np.random.set_state((kind, np.array(numbers, dtype=np.uint32), position, has_gauss, cached))
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
