"""Limits of a study: what an architecture may cost, and how far one is over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from search.rows import TrialRow
from search.spec.measures import Measure, measure_of

if TYPE_CHECKING:
    from search.spec.study import StudySpec


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a measure.

    Attributes:
        name: Its field in a study's `limits`, such as ``max_params``.
        measure: What is bounded.
        bound: The largest value of a ``max_`` limit, the smallest of a ``min_`` one.
    """

    name: str
    measure: Measure
    bound: float

    def excess(self, value: float) -> float:
        """How far a value is over the limit, as a share of it; 0 or less is within."""
        sign = 1.0 if self.name.startswith("max_") else -1.0
        return sign * (value - self.bound) / (abs(self.bound) or 1.0)


def limits_of(study: StudySpec) -> tuple[Limit, ...]:
    """Returns the limits that a study sets, in the order of their fields."""
    set_ones = study.limits.model_dump(exclude_none=True)
    return tuple(
        Limit(name, measure_of(study, name.split("_", 1)[1]), bound)
        for name, bound in set_ones.items()
    )


def excesses(row: TrialRow, limits: Sequence[Limit]) -> Mapping[str, float] | None:
    """Returns how far a trial is over each limit; None where a bounded value is not there."""
    found = {}
    for limit in limits:
        value = limit.measure.value(row)
        if value is None:
            return None
        found[limit.name] = limit.excess(value)
    return found


def are_within(rows: Sequence[TrialRow], limits: Sequence[Limit]) -> bool:
    """Whether the runs of an architecture are known to keep every limit in their median."""
    for limit in limits:
        values = [value for row in rows if (value := limit.measure.value(row)) is not None]
        if not values or limit.excess(median(values)) > 0:
            return False
    return True
