"""The optimiser of every trial as functions of the recipe: groups, schedule, reading points."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

if TYPE_CHECKING:
    from search.spec.study import TrainingSpec


def learning_rate_factor(step: int, *, steps: int, warmup_fraction: float) -> float:
    """The learning rate of one step as a share of its peak: a line up, then half a cosine down.

    With w = max(1, round(warmup_fraction * steps)) the factor of step t (from 0) is (t + 1) / w
    up to its peak 1 at t = w - 1, then (1 + cos(pi (t + 1 - w) / (steps + 1 - w))) / 2. No step
    is trained with a rate of zero: the cosine would reach it one step after the last.
    """
    warmup = max(1, round(warmup_fraction * steps))
    if step < warmup:
        return (step + 1) / warmup
    return (1 + math.cos(math.pi * (step + 1 - warmup) / max(1, steps + 1 - warmup))) / 2


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups by one rule: matrices outside embeddings decay, all else does not.

    Decayed is every parameter of two or more dimensions that no embedding owns (an output matrix
    tied to the embedding counts as the embedding's). Norms, biases, thresholds and embeddings
    keep their scale, whatever the mixer calls them. Shared parameters appear once.
    """
    embedded = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
        for parameter in module.parameters(recurse=False)
    }
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decayed = [p for p in trained if p.ndim >= 2 and id(p) not in embedded]
    kept = [p for p in trained if p.ndim < 2 or id(p) in embedded]
    groups = ((decayed, weight_decay), (kept, 0.0))
    return [{"params": params, "weight_decay": decay} for params, decay in groups if params]


def build_optimizer(model: nn.Module, training: TrainingSpec) -> tuple[AdamW, LambdaLR]:
    """AdamW (fused) over the two parameter groups, with its schedule by step."""
    optimizer = AdamW(
        parameter_groups(model, training.weight_decay), lr=training.learning_rate, fused=True
    )
    schedule = LambdaLR(
        optimizer,
        lambda step: learning_rate_factor(
            step, steps=training.steps, warmup_fraction=training.warmup_fraction
        ),
    )
    return optimizer, schedule


def reading_steps(steps: int, validations: int) -> tuple[int, ...]:
    """After how many steps the selection split is read: equally spaced, the last at the end."""
    return tuple(sorted({max(1, steps * k // validations) for k in range(1, validations + 1)}))
