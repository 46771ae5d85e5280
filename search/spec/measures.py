"""What an architecture can be judged by: the metrics it reaches, and what it costs.

One table for objectives, limits and fronts. A *metric* comes from the training and moves with its
seed; a *counted* cost follows from the architecture alone, so it is known before anything is
trained; a *measured* cost is read from the machine and has a spread. Units: seconds, bytes, FLOPs
of one forward pass of one sequence, sequences per second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from search.rows import TrialRow

if TYPE_CHECKING:
    from search.spec.study import StudySpec
    from search.tasks.objective import ObjectiveConfig

Direction = Literal["minimize", "maximize"]
Origin = Literal["metric", "counted", "measured"]


@dataclass(frozen=True, slots=True)
class Measure:
    """Something to be judged by.

    Attributes:
        name: What studies and columns call it.
        unit: Its unit.
        direction: Which way is better.
        origin: Where it comes from: training, architecture or machine.
    """

    name: str
    unit: str
    direction: Direction
    origin: Origin

    @property
    def sign(self) -> float:
        """+1 where low values are good, -1 where high ones are."""
        return 1.0 if self.direction == "minimize" else -1.0

    @property
    def is_known_before(self) -> bool:
        """Whether it is known, exactly, before the architecture is trained."""
        return self.origin == "counted"

    def value(self, row: TrialRow) -> float | None:
        """Returns a row's finite value, a metric's on the selection split; None without one."""
        is_metric = self.origin == "metric"
        value = row.selection.get(self.name) if is_metric else COST_OF[self.name](row)
        return float(value) if value is not None and math.isfinite(value) else None


def _throughput(row: TrialRow) -> float | None:
    timed = row.latency
    return timed.batch_size / timed.median if timed is not None and timed.median > 0 else None


COST_OF: Mapping[str, Callable[[TrialRow], float | None]] = {
    "params": lambda row: row.params,
    "flops": lambda row: row.flops,
    "latency": lambda row: row.latency_s,
    "throughput": _throughput,
    "peak_memory": lambda row: row.peak_memory,
}
COSTS: Mapping[str, Measure] = {
    cost.name: cost
    for cost in (
        Measure("params", "parameters", "minimize", "counted"),
        Measure("flops", "FLOPs", "minimize", "counted"),
        Measure("latency", "s", "minimize", "measured"),
        Measure("throughput", "sequences/s", "maximize", "measured"),
        Measure("peak_memory", "bytes", "minimize", "measured"),
    )
}
"""The costs by name; `latency` and `throughput` are those of the encoder on one training batch."""


def measure_of(study: StudySpec, name: str) -> Measure:
    """Returns what a name stands for in a study.

    An own function may return any metric; of the costs only the counted ones are ours there, since
    it trains and times what it likes.

    Raises:
        ValueError: No metric and no cost has this name.
    """
    from search.tasks.objective import ObjectiveConfig

    if isinstance(study.task, ObjectiveConfig):
        return _own_measure(study.task, name, is_first=name == study.objectives[0])
    if name in COSTS:
        return COSTS[name]
    from mixers.registry import suggestion
    from search.tasks.metrics import metric_registry

    registry = metric_registry()
    known = [entry.kind for entry in registry.entries()]
    if name not in known:
        hint = suggestion(name, [*known, *COSTS])
        raise ValueError(f"there is no metric or cost {name!r}; {hint}")
    metric = registry.load(name)
    return Measure(name, metric.unit, metric.direction, "metric")


def _own_measure(task: ObjectiveConfig, name: str, *, is_first: bool) -> Measure:
    cost = COSTS.get(name)
    if cost is not None and cost.is_known_before:
        return cost
    direction = task.directions.get(name, cost.direction if cost else task.direction)
    unit = cost.unit if cost else task.unit if is_first else ""
    return Measure(name, unit, direction, "metric")
