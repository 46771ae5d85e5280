"""What the study's limits did: which there were, and how many architectures keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from search.answers.arms import Arm
from search.answers.question import Question
from search.spec.limits import Limit, are_within


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits and the trained architectures.

    Attributes:
        limits: The limits; those known before training keep architectures out of the search.
        n_within: Trained architectures that keep every limit in the median of their runs.
        n_over: Those that do not, baselines among them, or whose value was not measured.
        reference_is_within: Whether the reference stack keeps them; None where it is not trained.
    """

    limits: tuple[Limit, ...]
    n_within: int
    n_over: int
    reference_is_within: bool | None


def bounds_of(arms: Sequence[Arm], reference: Arm | None, question: Question) -> Bounds:
    """Holds the architectures against the limits."""
    within = [are_within(arm.rows, question.limits) for arm in arms]
    return Bounds(
        limits=question.limits,
        n_within=sum(within),
        n_over=len(within) - sum(within),
        reference_is_within=(
            None if reference is None else are_within(reference.rows, question.limits)
        ),
    )
