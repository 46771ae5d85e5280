"""Section 5.4: layers and parameters of the construction against a flattened residual network."""

from dataclasses import dataclass
from math import comb, factorial

from mixers.theory.sizes import Sizes


@dataclass(frozen=True)
class Tightness:
    """One row of the comparison.

    The residual network of Lin and Jegelka (2018) reads X as one vector of d n numbers and spends
    one layer x + v relu(w^T x + b), 2 d n + 1 parameters, on each of the B^n cubes. A layer of the
    construction has at most 2 d + 1 parameters of its own in a feed-forward layer (w, b, v) and
    2 d + 2 in a selective shift (u, two thresholds, direction).

    Attributes:
        sizes: The sizes.
        layers: Layers of the construction.
        parameters: Their parameters.
        residual_layers: Layers of the flattened network.
        residual_parameters: Their parameters.
        numbers: Numbers that any such function must be told: d n for each orbit of cubes with
            distinct columns (Theorem 3: for each cube).
    """

    sizes: Sizes
    layers: int
    parameters: int
    residual_layers: int
    residual_parameters: int
    numbers: int

    @property
    def ratio(self) -> float | int:
        """Residual parameters over those of the construction; whole where no float is so large."""
        try:
            return self.residual_parameters / self.parameters
        except OverflowError:
            return self.residual_parameters // self.parameters

    @property
    def gain(self) -> int:
        """n!, what permutation equivariance saves in the limit (Theorem 3: 1)."""
        return factorial(self.sizes.n) if self.sizes.theorem == 2 else 1


def tightness(sizes: Sizes) -> Tightness:
    """Return the row of these sizes."""
    d, n, B = sizes.d, sizes.n, sizes.B
    layers = sizes.n_layers
    tokenwise = layers["quantizer"] + layers["value"]
    parameters = tokenwise * (2 * d + 1) + layers["shifts"] * (2 * d + 2) + (2 * d + 1)
    orbits = comb(B, n) if sizes.theorem == 2 else B**n
    return Tightness(
        sizes=sizes,
        layers=sum(layers.values()),
        parameters=parameters,
        residual_layers=B**n,
        residual_parameters=B**n * (2 * d * n + 1),
        numbers=d * n * orbits,
    )


def tightness_table(sizes: Sizes) -> list[Tightness]:
    """Return the rows for the sizes asked for, then for larger d, n and 1/delta."""
    d, n, K, theorem = sizes.d, sizes.n, sizes.K, sizes.theorem
    larger = [(d + 1, n, K), (d, n + 1, K), (d, n + 2, K), (d, n, 2 * K), (d, n, 8 * K)]
    fitting = [each for each in larger if theorem == 3 or each[1] <= each[2] ** each[0]]
    return [tightness(sizes), *(tightness(Sizes(*each, theorem)) for each in fitting)]
