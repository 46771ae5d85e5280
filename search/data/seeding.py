"""Random numbers that are a pure function of what they are for, never of what ran before."""

import functools
import hashlib

import numpy as np


def generator(purpose: str, seed: int, counter: int = 0) -> np.random.Generator:
    """Return the generator of one purpose, seed and counter (a step, an epoch).

    Philox is counter-based (Salmon et al. 2011): the key comes from purpose and seed, `counter` is
    the highest word of the block counter, so streams of different counters never meet.
    """
    bits = np.random.Philox(key=key_of(purpose, seed), counter=[0, 0, 0, counter])
    return np.random.Generator(bits)


@functools.lru_cache(maxsize=256)
def key_of(purpose: str, seed: int) -> int:
    """Return 128 bits that depend on every bit of purpose and seed."""
    return int.from_bytes(hashlib.sha256(f"{purpose}:{seed}".encode()).digest()[:16], "little")
