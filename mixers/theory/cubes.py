"""Step 1 (Lemma 8): a continuous function with compact support, made constant on cubes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from mixers.theory.layers import Number
from mixers.theory.sizes import Column, Sizes

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
