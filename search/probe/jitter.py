"""Perturbation of a network's numbers by their own rounding."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class Jitter:
    """Multiplies tensors entrywise by 1 + eps * xi, xi uniform on [-1, 1].

    The xi of a tensor are a stretch, at a random place, of a pool of draws at least twice as long:
    drawing anew for every sub-module took longer than the network itself.
    """

    def __init__(self, eps: float, seed: int) -> None:
        self.eps = eps
        self._seed = seed
        self._places = random.Random(seed)
        self._pool = torch.empty(0)

    def __call__(self, x: Tensor) -> Tensor:
        """Perturbs one floating-point tensor."""
        pool = self._pool
        if len(pool) < 2 * x.numel() or (pool.dtype, pool.device) != (x.dtype, x.device):
            generator = torch.Generator(device=x.device).manual_seed(self._seed)
            pool = torch.empty(2 * x.numel(), dtype=x.dtype, device=x.device)
            self._pool = pool.uniform_(-1, 1, generator=generator)
        start = self._places.randrange(len(pool) - x.numel() + 1)
        xi = pool[start : start + x.numel()].view(x.shape)
        return torch.addcmul(x, x, xi, value=self.eps)

    @contextmanager
    def on_every_output(self, module: nn.Module) -> Iterator[None]:
        """Perturbs what every sub-module of ``module`` returns."""

        def hook(module: nn.Module, args: Any, output: Any) -> Any:
            if isinstance(output, tuple):
                return tuple(hook(module, args, part) for part in output)
            is_number = isinstance(output, Tensor) and output.is_floating_point()
            return self(output) if is_number else output

        handles = [
            child.register_forward_hook(hook) for child in module.modules() if child is not module
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
