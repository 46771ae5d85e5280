"""Standard zero-cost predictors: numbers read from an untrained network and one batch.

As collected by Abdelfattah et al. 2021 (arXiv 2101.08134), carried over to encoders of text: a
sequence takes the place of an image, and numbers that a method feeds into a network enter in place
of the token embeddings.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from search.tasks.base import Batch, Task

NEARLY_SINGULAR = 1e-5
"""Added to eigenvalues by jacob_cov, as its authors do."""


def zero_cost(task: Task[Any], model: nn.Module, batch: Batch) -> dict[str, float]:
    """All predictors of one untrained model; the model is left as it was.

    Args:
        task: its loss is the one that is trained.
        model: with attributes ``encoder`` and ``head``.
        batch: one training batch.
    """
    found = gradients(task, model, batch)
    return {
        "grad_norm": float(sum(float((grad**2).sum()) for _, grad in found) ** 0.5),
        "snip": sum(float((p * grad).abs().sum()) for p, grad in found),
        "synflow": synflow(model.encoder, batch["ids"].shape[1]),
        "jacob_cov": jacob_cov(model.encoder, batch["ids"]),
        "naswot": naswot(model.encoder, batch["ids"]),
    }


def gradients(task: Task[Any], model: nn.Module, batch: Batch) -> list[tuple[Tensor, Tensor]]:
    """(parameter, gradient of the loss), of a copy in float64.

    Their norm is grad_norm; the sum of |parameter x gradient| is snip (Lee et al. 2019, arXiv
    1810.02340).
    """
    model = copy.deepcopy(model).double().eval()
    task.loss(model, batch).backward()  # type: ignore[no-untyped-call]
    return [(p.detach(), p.grad) for p in model.parameters() if p.grad is not None]


def synflow(encoder: nn.Module, n_tokens: int) -> float:
    """Log of the sum of |weight x gradient| of the output's sum (Tanaka et al. 2020, 2006.05467).

    Weights are replaced by their absolute values and the tokens' vectors by ones. The last norm is
    left out, because its outputs always sum to zero; the others stay, because without them the
    scores of attention overflow within four layers.
    """
    network = copy.deepcopy(encoder).double().eval()
    network.final_norm = nn.Identity()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.abs_()
    ones = torch.ones(1, n_tokens, network.spec.d_model, dtype=torch.float64)
    network(ones).sum().backward()
    with torch.no_grad():
        flow = sum((p * p.grad).abs().sum() for p in network.parameters() if p.grad is not None)
    return math.log(float(flow))


def vectors(encoder: nn.Module, ids: Tensor) -> Tensor:
    """What enters for the tokens, in place of their ids."""
    embedded: Tensor = encoder.token_scale * encoder.token_embedding(ids)  # type: ignore[operator]
    return embedded.detach()


def jacob_cov(encoder: nn.Module, ids: Tensor) -> float:
    """-sum(log(l + k) + 1 / (l + k)) over the eigenvalues l of the correlations between Jacobians.

    A row is the gradient of the output's squared length with respect to one sequence's input
    (Mellor et al., first version of arXiv 2006.04647).
    """
    network = copy.deepcopy(encoder).double().eval()
    x = vectors(network, ids).requires_grad_()
    (jacobian,) = torch.autograd.grad(network(x).pow(2).sum(), x)
    eigenvalues = torch.linalg.eigvalsh(torch.corrcoef(jacobian.flatten(1)))
    shifted = eigenvalues.clamp(min=0) + NEARLY_SINGULAR
    return -float((shifted.log() + 1 / shifted).sum())


def naswot(encoder: nn.Module, ids: Tensor) -> float:
    """Log |det K|, K the shares of activations that two sequences have in common (2006.04647).

    An activation is on where what enters the feed-forward layer's nonlinearity is positive.
    """
    network = copy.deepcopy(encoder).double().eval()
    codes: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> None:
        codes.append((output > 0).flatten(1))

    handles = [block.feed_forward.wide.register_forward_hook(keep) for block in network.blocks]
    with torch.no_grad():
        network(ids)
    for handle in handles:
        handle.remove()
    on = torch.cat(codes, dim=1).double()
    kernel = (on @ on.T + (1 - on) @ (1 - on).T) / on.shape[1]
    return float(torch.linalg.slogdet(kernel).logabsdet)
