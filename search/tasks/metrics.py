"""Metrics: numbers computed from what a model did on every single example of a split.

A metric is an entry point of the group `search.metrics.v1`. It sees the records of the whole split
at once, so it cannot become a mean of batch means and does not depend on the batch size.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mixers.registry import Registry
from search.errors import InputError

Records = Mapping[str, NDArray[Any]]
"""What a task records per example, one array per name, all of one length."""


class Metric(ABC):
    """One number for a split.

    Attributes:
        name: What columns and messages call it; equals the entry point's name.
        unit: Its unit, such as "nats" or "fraction".
        direction: Which way is better.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    direction: ClassVar[Literal["minimize", "maximize"]]

    def per_target(self, records: Records) -> NDArray[Any] | None:
        """Return one value per target whose mean is the metric; None if it is no such mean.

        With it the answer knows how much of a difference may be due to the choice of documents.
        """
        return None

    @abstractmethod
    def __call__(self, records: Records) -> float:
        """Return the metric of all records of one split.

        Raises:
            InputError: The task does not record what the metric needs, or nothing at all.
        """


class Loss(Metric):
    """Mean cross-entropy per target: -log p(target), natural logarithm, in nats."""

    name = "loss"
    unit = "nats"
    direction = "minimize"

    def per_target(self, records: Records) -> NDArray[Any]:
        """Return "nll"."""
        return targets_of(records, "nll", self.name)

    def __call__(self, records: Records) -> float:
        """Return the mean of "nll" over all targets, summed in float64."""
        return float(self.per_target(records).mean())


class Accuracy(Metric):
    """Share of targets whose most probable prediction is right."""

    name = "accuracy"
    unit = "fraction"
    direction = "maximize"

    def per_target(self, records: Records) -> NDArray[Any]:
        """Return "correct" as 0 and 1."""
        return targets_of(records, "correct", self.name)

    def __call__(self, records: Records) -> float:
        """Return the mean of "correct" over all targets."""
        return float(self.per_target(records).mean())


def targets_of(records: Records, key: str, metric: str) -> NDArray[Any]:
    """Return one record in float64.

    Raises:
        InputError: It is missing or empty.
    """
    if key not in records:
        raise InputError(
            f"metric {metric!r} needs the record {key!r}; the task records {', '.join(records)}"
        )
    values = np.asarray(records[key], dtype=np.float64)
    if not len(values):
        raise InputError(f"metric {metric!r}: the split has no targets, so there is no mean")
    return values


@cache
def metric_registry() -> Registry[Metric]:
    """Return the metrics that are installed or registered."""
    return Registry(
        "search.metrics.v1", contract=lambda: Metric, noun="metric", unknown_error=InputError
    )


def build_metric(name: str) -> Metric:
    """Return the metric of this name.

    Raises:
        InputError: No such metric.
    """
    return metric_registry().load(name)()
