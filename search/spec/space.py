"""The search space: one categorical per layer over the notation of its choices.

A choice is known by its notation (``"sepconv(kernel_size=9)"``), never by its place in a list, so
the order in which plugins were discovered or choices were written changes no stored trial, and a
trial of a former space reads as a point of the present one wherever its choices still exist.
The number of layers is fixed: shorter encoders appear as baselines only.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixers.config import MixerConfig
from mixers.notation import format_layer

if TYPE_CHECKING:
    from search.spec.study import StudySpec

MOST_COMPARED = 500
Labels = tuple[str, ...]
"""The notation of each layer's mixer, first layer first."""


def parameter(layer: int) -> str:
    """Returns the name of a layer's parameter: ``layer_0`` for the first."""
    return f"layer_{layer}"


@dataclass(frozen=True)
class Space:
    """Choices of each layer, as ``{notation: config}`` in the study's order."""

    layers: tuple[Mapping[str, MixerConfig], ...]

    @staticmethod
    def of(study: StudySpec) -> Space:
        """Returns the architectures that a study may train: those within its limits.

        Only limits that are known before training take part, on parameters and FLOPs.
        """
        from search.spec.limited_space import within_limits

        return within_limits(study, Space.product(study))

    @classmethod
    def product(cls, study: StudySpec) -> Space:
        """Returns every architecture of a study's choices, whatever its limits say."""
        own = {entry.layer: entry.choices for entry in study.space.layers}
        sizes = study.mixer_sizes
        return cls(
            tuple(
                {format_layer(c, **sizes): c for c in own.get(layer, study.space.choices)}
                for layer in range(study.encoder.n_layers)
            )
        )

    @property
    def size(self) -> int:
        """Number of architectures."""
        return math.prod(len(choices) for choices in self.layers)

    @property
    def is_limited(self) -> bool:
        """Whether limits keep some architectures of the choices out."""
        return False

    @property
    def choices(self) -> Mapping[str, MixerConfig]:
        """Every choice of any layer, once, in order of first appearance."""
        return {label: config for layer in self.layers for label, config in layer.items()}

    def __contains__(self, labels: object) -> bool:
        return (
            isinstance(labels, tuple)
            and len(labels) == len(self.layers)
            and all(label in layer for label, layer in zip(labels, self.layers, strict=True))
        )

    def params(self, labels: Labels) -> dict[str, str] | None:
        """Writes an architecture as parameters, or None where it lies outside the space."""
        if labels not in self:
            return None
        return {parameter(layer): label for layer, label in enumerate(labels)}

    def labels(self, params: Mapping[str, str]) -> Labels:
        """Reads parameters back; the inverse of `params`."""
        return tuple(params[parameter(layer)] for layer in range(len(self.layers)))

    def mixers(self, labels: Labels) -> tuple[MixerConfig, ...]:
        """Returns the configs of an architecture of the space."""
        return tuple(layer[label] for label, layer in zip(labels, self.layers, strict=True))

    def at(self, index: int) -> Labels:
        """Returns the architecture of an index in ``range(size)``; the last layer moves fastest."""
        if not 0 <= index < self.size:
            raise IndexError(f"index {index} in a space of {self.size} architectures")
        reversed_labels = []
        for layer in reversed(self.layers):
            index, choice = divmod(index, len(layer))
            reversed_labels.append(list(layer)[choice])
        return tuple(reversed(reversed_labels))

    def index(self, labels: Labels) -> int:
        """Returns the index of an architecture of the space; the inverse of `at`."""
        index = 0
        for label, layer in zip(labels, self.layers, strict=True):
            index = index * len(layer) + list(layer).index(label)
        return index

    def __iter__(self) -> Iterator[Labels]:
        return (self.at(index) for index in range(self.size))

    def inside(self, architectures: Collection[Labels]) -> set[Labels]:
        """Returns the distinct architectures that lie in the space."""
        return {labels for labels in architectures if labels in self}

    def untrained(self, trained: Collection[Labels], seed: int) -> Labels | None:
        """Draws uniformly among the architectures not trained, or None where none is left."""
        return self._draw(self._taken(trained), random.Random(seed))

    def nearest_untrained(
        self, labels: Labels, trained: Collection[Labels], seed: int
    ) -> Labels | None:
        """Returns the untrained architecture that differs from another in the fewest layers.

        Ties are broken at random; in a space of more than `MOST_COMPARED`, the nearest of so many
        draws is taken. None where nothing is left.
        """
        taken, generator = self._taken(trained), random.Random(seed)
        if self.size <= MOST_COMPARED:
            known = set(taken)
            left = [self.at(index) for index in range(self.size) if index not in known]
        else:
            drawn = (self._draw(taken, generator) for _ in range(MOST_COMPARED))
            left = [found for found in drawn if found is not None]
        generator.shuffle(left)

        def changes(found: Labels) -> int:
            return sum(a != b for a, b in zip(found, labels, strict=True))

        return min(left, key=changes, default=None)

    def _taken(self, trained: Collection[Labels]) -> list[int]:
        return sorted(self.index(labels) for labels in self.inside(trained))

    def _draw(self, taken: Sequence[int], generator: random.Random) -> Labels | None:
        left = self.size - len(taken)
        if left <= 0:
            return None
        index = generator.randrange(left)
        for skipped in taken:
            if skipped > index:
                break
            index += 1
        return self.at(index)

    def first_untrained(self, trained: Collection[Labels], skip: int = 0) -> Labels | None:
        """Returns the first architecture not trained, after skipping so many, or None."""
        taken = self.inside(trained)
        for labels in self:
            if labels in taken:
                continue
            if skip == 0:
                return labels
            skip -= 1
        return None


def layer_labels(mixers: Sequence[MixerConfig], study: StudySpec) -> Labels:
    """Returns the notation of each mixer at the study's sizes, as stored rows have it."""
    sizes = study.mixer_sizes
    return tuple(format_layer(mixer.resolve(**sizes), **sizes) for mixer in mixers)
