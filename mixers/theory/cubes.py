"""Step 1 (Lemma 8): a continuous function with compact support, made constant on cubes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from mixers.theory.layers import Number
from mixers.theory.sizes import Column, Sizes, TheoryError

Function = Callable[[Tensor], Tensor]
"""f, batched: (B, n, d) float64 in [0, 1] to the same shape; 0 outside. Tokens are rows, the
transpose of the paper's X; for Theorem 2 it commutes with every order of the tokens."""

FINEST = 256
"""The largest 1 / delta that is tried."""


def support(x: Tensor) -> Tensor:
    """Return prod min(1, 4 x (1 - x)) over all entries, (B, 1, 1): 0 on the cube's boundary."""
    inside = (4 * x * (1 - x)).clamp(0, 1)
    return inside.flatten(1).prod(1)[:, None, None]


def mean(x: Tensor) -> Tensor:
    """Return the mean of all tokens for each token, times `support`."""
    return support(x) * x.mean(1, keepdim=True).expand_as(x)


def centred(x: Tensor) -> Tensor:
    """Return each token less the mean of all, times `support`."""
    return support(x) * (x - x.mean(1, keepdim=True))


def previous(x: Tensor) -> Tensor:
    """Return the token before each one, 0 before the first, times `support`; needs positions."""
    return support(x) * torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)


FUNCTIONS: dict[str, Function] = {"mean": mean, "centred": centred, "previous": previous}
"""Functions by name; all but "previous" are permutation-equivariant."""


CHECKED_POINTS = 200
SAME_UP_TO = 1e-5
"""Of the largest value: what rounding in single precision may do to a sum in another order."""


def require_target(function: Function, d: int, n: int, theorem: int) -> None:
    """Look at a function on some uniform points, also with their tokens reversed.

    Raises:
        TheoryError: It fails there, does not return finite vectors of the same shape, or, for
            Theorem 2, is not permutation-equivariant.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.rand((CHECKED_POINTS, n, d), dtype=torch.float64, generator=generator)
    values: Any  # a function of the user may return whatever it likes
    try:
        values, reversed_values = function(x), function(x.flip(1))
    except Exception as error:  # whatever a function of the user raises
        raise TheoryError(f"the target fails: {type(error).__name__}: {error}") from error
    if not isinstance(values, Tensor) or values.shape != x.shape:
        found = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise TheoryError(f"the target returns {found} for vectors {list(x.shape)}, the same asked")
    if not bool(torch.isfinite(values).all()):
        raise TheoryError("the target returns values that are not finite")
    off = float((values.flip(1) - reversed_values).abs().max())
    if theorem == 2 and off > SAME_UP_TO * float(values.abs().max()):
        raise TheoryError(
            f"the target is not permutation-equivariant, which Theorem 2 asks for: with the tokens "
            f"reversed its values are off by up to {off:.3g}; take theorem 3"
        )


class OnCubes:
    """The target that takes on each cube the value of f at its centre.

    Args:
        function: f.
        sizes: The cubes.
    """

    def __init__(self, function: Function, sizes: Sizes) -> None:
        self.function = function
        self.sizes = sizes

    def __call__(self, columns: Sequence[Column]) -> list[list[Number]]:
        """Return n columns of values in units of delta, exactly what f gave in float64."""
        centre = (torch.tensor([columns], dtype=torch.float64) + 0.5) / self.sizes.K
        values = self.function(centre)[0].tolist()
        return [[Fraction(entry) * self.sizes.K for entry in value] for value in values]

    def at(self, x: Tensor) -> Tensor:
        """Return the piecewise constant function itself at points (B, n, d) of [0, 1)."""
        return self.function(((x * self.sizes.K).floor() + 0.5) / self.sizes.K)


@dataclass(frozen=True)
class Fineness:
    """How well cubes of one width follow f.

    Attributes:
        K: 1 / delta.
        distance: d_p(f, cubes) over [0, 1]^(d x n), measured.
        largest: The largest |f(X) - f(centre)| in one entry that was met.
    """

    K: int
    distance: float
    largest: float


def fineness(
    function: Function, sizes: Sizes, *, p: float = 2.0, points: int = 20_000, seed: int = 0
) -> Fineness:
    """Measure d_p(f, cubes) on uniform points of [0, 1]^(d x n)."""
    x = uniform(sizes, points=points, seed=seed)
    difference = (function(x) - OnCubes(function, sizes).at(x)).abs()
    return Fineness(sizes.K, mean_distance(difference, p), float(difference.max()))


def choose_delta(
    function: Function, d: int, n: int, *, eps: float, theorem: int = 2, p: float = 2.0
) -> list[Fineness]:
    """Halve delta until d_p(f, cubes) <= eps / 3, as step 1 of the proof asks.

    Returns:
        Every delta tried, coarsest first; the last one is chosen, or the finest that is tried.
    """
    tried: list[Fineness] = []
    K = 2
    while K <= FINEST and (not tried or tried[-1].distance > eps / 3):
        if theorem == 3 or n <= K**d:
            tried.append(fineness(function, Sizes(d, n, K, 3 if theorem == 3 else 2), p=p))
        K *= 2
    return tried


def uniform(sizes: Sizes, *, points: int, seed: int) -> Tensor:
    """Draw points of [0, 1)^(n x d)."""
    generator = torch.Generator().manual_seed(seed)
    shape = (points, sizes.n, sizes.d)
    return torch.rand(shape, dtype=torch.float64, generator=generator)


def mean_distance(difference: Tensor, p: float) -> float:
    """Return (mean over points of the sum of |difference|^p)^(1/p): d_p over the unit cube."""
    return float((difference**p).flatten(1).sum(1).mean() ** (1 / p))
