"""A screening design in the words of a space: which two mixers, in which layers, in which order.

Pure functions of the choices and of what is trained; no Optuna here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mixers.notation import kind_of
from search.strategies.screen_design import Design, Run, screening_design

NOTE = "screen"
"""Name of the sampler's note about a trial of the design and, without `run`, about the study."""

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Screening:
    """A design over the layers that may be the reference or the cheap mixer.

    Attributes:
        reference: Notation of the mixer to be replaced.
        cheap: Notation of its replacement.
        layers: The layers that the design varies, first to last.
        fixed: What each layer is where the design does not vary it.
    """

    reference: str
    cheap: str
    layers: tuple[int, ...]
    fixed: Labels

    @property
    def design(self) -> Design:
        """The design over `layers`."""
        return screening_design(len(self.layers))

    @property
    def runs(self) -> tuple[Labels, ...]:
        """Its architectures in the order in which they are trained."""
        return tuple(self.labels(run) for run in self.design.runs)

    def labels(self, run: Run) -> Labels:
        """Returns the architecture of a run."""
        labels = list(self.fixed)
        for layer, cheap in zip(self.layers, run, strict=True):
            labels[layer] = self.cheap if cheap else self.reference
        return tuple(labels)

    def run(self, labels: Labels) -> Run | None:
        """Returns the run of an architecture; None where it is no stack of the two mixers."""
        if len(labels) != len(self.fixed):
            return None
        run = tuple(labels[layer] == self.cheap for layer in self.layers)
        return run if self.labels(run) == labels else None

    def note(self) -> dict[str, Any]:
        """The design as plain values for a store."""
        return {
            "reference": self.reference,
            "cheap": self.cheap,
            "layers": list(self.layers),
            "fixed": list(self.fixed),
        }

    @classmethod
    def of_note(cls, note: Mapping[str, Any]) -> Screening:
        """Reads `note` back."""
        return cls(note["reference"], note["cheap"], tuple(note["layers"]), tuple(note["fixed"]))


def screening_of(
    choices: Sequence[Sequence[str]],
    reference: str,
    cheap: str,
    uniform: Mapping[str, float],
) -> Screening | None:
    """Returns the design of a space, or None where no layer has both mixers to choose from.

    The cheap mixer is the one whose uniform stack was best, if one was trained; mixers of the
    reference's own kind take part only where there is no other.

    Args:
        choices: Notation of the choices of each layer.
        reference: The mixer to be replaced, by notation or kind.
        cheap: Its replacement where no uniform stack is trained; where it is no choice, the first
            other one.
        uniform: What each mixer's uniform stack was worth; low is good.
    """
    offered = list(dict.fromkeys(label for layer in choices for label in layer))
    replaced = _named(reference, offered)
    if replaced is None:
        return None
    others = [label for label in offered if label != replaced]
    others = [label for label in others if kind_of(label) != kind_of(replaced)] or others
    tried = [label for label in others if label in uniform]
    best = min(tried, key=lambda label: uniform[label]) if tried else _named(cheap, others)
    replacement = best or next(iter(others), None)
    layers = tuple(
        index
        for index, layer in enumerate(choices)
        if replaced in layer and replacement is not None and replacement in layer
    )
    if replacement is None or not layers:
        return None
    fixed = tuple(replaced if replaced in layer else layer[0] for layer in choices)
    return Screening(replaced, replacement, layers, fixed)


def _named(name: str, labels: Sequence[str]) -> str | None:
    if name in labels:
        return name
    return next((label for label in labels if kind_of(label) == name), None)
