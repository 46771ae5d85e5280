"""The check that a gradient is a derivative."""

from collections.abc import Callable

import torch
from torch import Tensor

from mixers.conformance.subject import Subject, causal_modes

STEP = 1e-6
ROUNDING = 1e-5
"""Far above what two evaluations in float64, `STEP` to each side, are apart by rounding alone."""


def check_derivative(subject: Subject) -> None:
    """Gradients are the derivatives of the output if, and only if, not surrogate_gradient."""
    claimed = subject.mixer_type.traits(subject.config).surrogate_gradient
    found = [
        wrong for causal in causal_modes(subject) for wrong in wrong_gradients(subject, causal)
    ]
    if claimed and not found:
        raise subject.fail(
            "surrogate_gradient=True",
            "every gradient is the derivative of the output",
            "two rows of random tokens, one padded, in a random direction",
        )
    if found and not claimed:
        raise subject.fail("surrogate_gradient=False", *found[0])


def wrong_gradients(subject: Subject, causal: bool) -> list[tuple[str, str]]:
    """Return (what was measured, where) for each gradient that is no derivative."""
    mixer = subject.build(causal=causal)
    mask = torch.ones(2, subject.seq_len, dtype=torch.bool)
    mask[1, -3:] = False
    x = subject.tokens(2).requires_grad_()
    weight = subject.tokens(2, seed=2) * mask[..., None]
    parameters = {name: p for name, p in mixer.named_parameters() if p.requires_grad}
    inputs = {"x": x, **parameters}
    loss = (mixer(x, mask) * weight).sum()
    gradients: list[Tensor] = [torch.zeros_like(tensor) for tensor in inputs.values()]
    if loss.requires_grad:
        gradients = list(torch.autograd.grad(loss, list(inputs.values()), materialize_grads=True))
    found = []
    for (name, tensor), gradient in zip(inputs.items(), gradients, strict=True):
        direction = random_like(tensor)
        told = float((gradient * direction).sum())
        moved = slope(lambda: float((mixer(x, mask) * weight).sum()), tensor, direction)
        if not abs(told - moved) <= ROUNDING * (1.0 + abs(moved)):
            found.append(
                (
                    f"the gradient of {name} says {told:.6g}, the output moves by {moved:.6g}",
                    f"a small step in a random direction of {name}, causal={causal}",
                )
            )
    return found


def random_like(tensor: Tensor) -> Tensor:
    """Return a direction of normal numbers, the same at each call."""
    generator = torch.Generator().manual_seed(7)
    return torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)


def slope(loss: Callable[[], float], tensor: Tensor, direction: Tensor) -> float:
    """Return the derivative of a loss by one of its inputs, from a step to each side."""
    start = tensor.detach().clone()
    ends = []
    with torch.no_grad():
        for sign in (1.0, -1.0):
            tensor.copy_(start + sign * STEP * direction)
            ends.append(loss())
        tensor.copy_(start)
    return (ends[0] - ends[1]) / (2.0 * STEP)
