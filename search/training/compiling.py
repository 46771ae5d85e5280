"""Encoders that are compiled for the steps of their training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from search.training.environment import BACKEND


@contextmanager
def compiled(encoder: nn.Module, *, wanted: bool) -> Iterator[None]:
    """Compiles an encoder in place, if wanted, and gives it back as it was.

    In place, parameters keep their names: a checkpoint is the same with and without. It stays eager
    within ``eager``.
    """
    if not wanted:
        yield
        return
    encoder.compile(backend=BACKEND, dynamic=False)
    try:
        yield
    finally:
        encoder._compiled_call_impl = None


@contextmanager
def eager() -> Iterator[None]:
    """Runs what was compiled as it was written: other shapes than those of a step, a few times."""
    with torch.compiler.set_stance("force_eager"):
        yield
