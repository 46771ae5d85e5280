"""Studies whose truth is known: what each architecture's loss is, and how it is disturbed.

A reading of a split is the architecture's true mean, plus a disturbance of the seed, plus for each
document of the split: how hard it is for all, how it suits this architecture, and noise of this
run. The selection and the test split have documents of their own, so what was chosen on one is
read on another. All numbers are in nats, on the scale of the default study (tolerance 0.02).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search.rows import DocumentSums
from search.spec.space import Labels

TOLERANCE = 0.02
LEVEL = 3.0
GROUPS = 32
ATTENTION = "attention"

Effect = Callable[[Labels], float]
Reading = tuple[float, DocumentSums]


@dataclass(frozen=True)
class World:
    """A truth.

    Attributes:
        name: for tables.
        about: one line for people.
        effect: true loss of an architecture, above an arbitrary level.
        seed_sd: SD between an architecture's seeds.
        shared_seed: correlation between architectures trained with one seed.
        gap_sd: SD between documents of how a document suits an architecture.
        hard_sd: SD between documents of how hard they are for all.
        run_sd: SD of one run's noise on one group of documents.
    """

    name: str
    about: str
    effect: Effect
    seed_sd: Effect = lambda layers: 0.01
    shared_seed: float = 0.0
    gap_sd: float = 0.02
    hard_sd: float = 0.3
    run_sd: float = 0.02


class Sample:
    """One draw of a world's documents, seeds and runs."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.generator = np.random.default_rng(seed)
        self.n = {split: self.generator.integers(100, 300, GROUPS) for split in SPLITS}
        self.hard = {split: self._normal(world.hard_sd) for split in SPLITS}
        self.gaps: dict[tuple[str, Labels], NDArray[np.float64]] = {}
        self.seeds: dict[int, float] = {}

    def read(self, layers: Labels, seed: int) -> dict[str, Reading]:
        """Trains once: the loss on each split, and its sums by document."""
        world = self.world
        if seed not in self.seeds:
            self.seeds[seed] = float(self.generator.standard_normal())
        common, own = self.seeds[seed], float(self.generator.standard_normal())
        rho = world.shared_seed
        luck = world.seed_sd(layers) * (rho**0.5 * common + (1 - rho) ** 0.5 * own)
        mean = LEVEL + world.effect(layers) + luck
        return {split: self._reading(split, layers, mean) for split in SPLITS}

    def _reading(self, split: str, layers: Labels, mean: float) -> Reading:
        if (split, layers) not in self.gaps:
            self.gaps[split, layers] = self._normal(self.world.gap_sd)
        values = mean + self.hard[split] + self.gaps[split, layers]
        values = values + self._normal(self.world.run_sd)
        n = self.n[split]
        sums = values * n
        documents = DocumentSums(tuple(n.tolist()), tuple(sums.tolist()))
        return float(sums.sum() / n.sum()), documents

    def _normal(self, sd: float) -> NDArray[np.float64]:
        return sd * self.generator.standard_normal(GROUPS)


SPLITS = ("selection", "test")


def cheap_share(layers: Labels) -> float:
    """Share of the layers that are no attention."""
    return sum(not layer.startswith(ATTENTION) for layer in layers) / len(layers)


def is_cheap(layers: Labels, index: int) -> bool:
    """Whether a layer is there and no attention."""
    return index < len(layers) and not layers[index].startswith(ATTENTION)


def depth_cost(layers: Labels, cost: float) -> float:
    """What half of the layers costs."""
    return cost if len(layers) < 4 else 0.0


def count_effect(layers: Labels) -> float:
    """The first cheap layer gains most, the rest less and less; the place does not matter."""
    curve = np.interp(cheap_share(layers), (0, 0.25, 0.5, 0.75, 1), (0, -0.32, -0.39, -0.42, -0.41))
    return float(curve) + depth_cost(layers, 0.06)


def position_effect(layers: Labels) -> float:
    """A cheap first layer gains, a cheap last layer loses more."""
    gain = -0.05 * is_cheap(layers, 0) + 0.08 * is_cheap(layers, len(layers) - 1)
    return gain + depth_cost(layers, 0.05)


def interaction_effect(layers: Labels) -> float:
    """The two first layers gain together and lose apart: no effect of one layer is true of all."""
    both = is_cheap(layers, 0), is_cheap(layers, 1)
    return -0.06 * all(both) + 0.04 * (any(both) and not all(both)) + depth_cost(layers, 0.05)


def kind_effect(layers: Labels) -> float:
    """One replacement is as good as attention, the others worse and worse."""
    each = {"sepconv": 0.0, "bproj": 0.02, "average": 0.06, "hardmax_shift": 0.04}
    return sum(each.get(layer.split("(")[0], 0.0) for layer in layers) + depth_cost(layers, 0.03)


def noisy_attention(layers: Labels) -> float:
    """All-attention is five times noisier than stacks without it."""
    return 0.01 + 0.04 * (1 - cheap_share(layers)) ** 2


WORLDS = {
    world.name: world
    for world in (
        World("null", "identical mixers under five names", lambda layers: 0.0),
        World(
            "border",
            "whatever is not all-attention loses 1.001 tolerances",
            lambda layers: 1.001 * TOLERANCE * (cheap_share(layers) > 0 or len(layers) < 4),
        ),
        World("count", "the number of cheap layers decides, as measured", count_effect),
        World("position", "a cheap first layer gains, a cheap last one loses", position_effect),
        World("interaction", "two cheap layers gain together, lose apart", interaction_effect),
        World("kinds", "four replacements, from equal to bad", kind_effect),
        World(
            "harm",
            "every cheap layer loses 1.5 tolerances",
            lambda layers: 1.5 * TOLERANCE * cheap_share(layers) * len(layers),
        ),
        World(
            "unequal null",
            "identical mixers; attention 5 x as noisy",
            lambda _: 0.0,
            noisy_attention,
        ),
        World("unequal count", "count; attention 5 x as noisy", count_effect, noisy_attention),
        World("shared seeds", "identical mixers; seeds move all", lambda _: 0.0, shared_seed=0.8),
    )
}
