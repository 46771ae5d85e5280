"""The noise floor: how far rounding alone moves an output.

R recomputations in another batch order and size, in which the input of the first block and every
sub-module's output are multiplied entrywise by 1 + eps * xi, xi ~ U[-1, 1], eps the spacing of the
number format at 1. With eta the largest movement of an item, its threshold is
tau = 8 eta + 4 eps ||h||; two outputs count as separated if they are further apart than the larger
of their thresholds. For networks without positions the last recomputation permutes the tokens.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from search.probe.network import FrozenNetwork, Rows

REPEATS = 3


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


def noise_floor(
    network: FrozenNetwork,
    rows: Rows,
    outputs: dict[str, Tensor],
    *,
    permute_tokens: bool,
    seed: int,
    repeats: int = REPEATS,
) -> dict[str, Tensor]:
    """Thresholds tau of every item at every probe point, (rows, N) float64.

    Args:
        network: the network that gave ``outputs``.
        rows: its inputs.
        outputs: probe point -> (rows, N, D), computed without perturbation.
        permute_tokens: permute the tokens of the last recomputation (equivariant networks).
        seed: of the perturbations and orders.
        repeats: R.
    """
    eps = float(torch.finfo(network.dtype).eps)
    jitter = Jitter(eps, seed)
    order_of = torch.Generator().manual_seed(seed)
    n_rows, n_tokens = rows.tokens.shape
    eta = {name: torch.zeros(h.shape[:2], dtype=torch.float64) for name, h in outputs.items()}
    for repeat in range(repeats):
        order = torch.randperm(n_rows, generator=order_of)
        columns = torch.arange(n_tokens)
        if permute_tokens and repeat == repeats - 1:
            columns = torch.randperm(n_tokens, generator=order_of)
        moved = network(
            rows.select(order).permute(columns),
            batch_size=-(-min(n_rows, network.batch_size(rows)) // (repeat + 2)),
            jitter=jitter,
        )
        for name, h in outputs.items():
            back = torch.empty_like(moved[name])
            back[order[:, None], columns[None]] = moved[name]
            eta[name] = torch.maximum(eta[name], torch.linalg.vector_norm(back - h, dim=-1))
    return {
        name: 8 * eta[name] + 4 * eps * torch.linalg.vector_norm(h, dim=-1)
        for name, h in outputs.items()
    }
