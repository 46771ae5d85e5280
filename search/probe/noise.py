"""The noise floor: how far rounding alone moves an output.

R recomputations in another batch order and size, in which the input of the first block and every
sub-module's output are multiplied entrywise by 1 + eps * xi, xi ~ U[-1, 1], eps the spacing of the
number format at 1. With eta the largest movement of an item, its threshold is
tau = 8 eta + 4 eps ||h||; two outputs count as separated if they are further apart than the larger
of their thresholds. For networks without positions the last recomputation permutes the tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from search.probe.jitter import Jitter
from search.probe.network import FrozenNetwork, Rows

REPEATS = 3


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
