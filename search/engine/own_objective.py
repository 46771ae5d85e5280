"""A user's own function in place of the training: architecture, seed, report -> metrics."""

from __future__ import annotations

import hashlib
import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mixers.registry import code_value
from search.engine.assignments import Assignment, splits_of
from search.errors import InputError
from search.messages import Costs, Message, Report, TrialFailure, TrialResult
from search.tasks.base import Split
from search.training.failure import failure_of

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec

Metrics = Mapping[str, float]
Outcome = TrialResult | TrialFailure


class ReportFunction(Protocol):
    """What an objective may call between its steps; ends the trial where it must not go on."""

    def __call__(self, step: int, metrics: float | Metrics) -> None:
        """Records a value (or several by name) after so many steps."""


class Objective(Protocol):
    """A function to be searched: a better architecture gives a better value."""

    def __call__(self, architecture: EncoderSpec, seed: int, report: ReportFunction) -> Any:
        """Returns the objective, or metrics by name with the objective among them."""


class EndedEarlyError(BaseException):
    """Raised by `report` inside an objective: the trial diverged or must stop.

    No `Exception`, so that an objective's own `except Exception` does not keep it.
    """

    def __init__(self, outcome: str, reason: str) -> None:
        self.outcome = outcome
        super().__init__(reason)


def objective_name(objective: Objective) -> str:
    """Returns the name of a function, or of the class of a callable object."""
    return getattr(objective, "__name__", None) or type(objective).__name__


def source_sha256(objective: Objective) -> str:
    """Returns a hash of the function's source, or of its code where no source is at hand."""
    target: Any = objective
    if not inspect.isroutine(objective) and not inspect.isclass(objective):
        target = type(objective)
    try:
        text = inspect.getsource(target)
    except (OSError, TypeError):
        code = getattr(target, "__code__", None)
        if code is None:
            raise InputError(
                f"objective {objective_name(objective)}: its source cannot be read; pass a function"
            ) from None
        text = repr(code_value(code))
    return hashlib.sha256(text.encode()).hexdigest()


class ObjectiveRunner:
    """Runs trials by calling the function in this process.

    Args:
        objective: The function.
        metric: Name of the objective among the metrics; a bare number gets this name.
        needed: Other metrics that the function must return: further objectives and limits.
    """

    device = "cpu"

    def __init__(self, objective: Objective, metric: str, needed: Sequence[str] = ()) -> None:
        self.objective = objective
        self.metric = metric
        self.needed = tuple(needed)

    def run(
        self,
        assignment: Assignment,
        *,
        on_message: Callable[[Message], None],
        should_stop: Callable[[], str | None],
    ) -> Outcome:
        """Calls the function once; an exception of it is a failed trial, never one of ours."""
        started = time.monotonic()
        splits = splits_of(assignment.claim.phase)
        last: list[Report] = []

        def report(step: int, metrics: float | Metrics) -> None:
            named = self._named(metrics)
            refuse_not_finite(named, f"step {step}")
            last.append(Report(step=step, split="selection", metrics=named))
            on_message(last[-1])
            if (reason := should_stop()) is not None:
                raise EndedEarlyError("stopped", reason)

        def result(outcome: Any, reason: str, metrics: Metrics | None) -> TrialResult:
            evaluations: dict[Split, dict[str, float]] = {}
            if metrics is not None:
                evaluations = {split: dict(metrics) for split in splits}
            return TrialResult(
                outcome=outcome,
                reason=reason,
                steps=last[-1].step if last else 0,
                sequences=0,
                seconds=time.monotonic() - started,
                evaluations=evaluations,
                costs=costs(assignment.spec),
                probes=(),
                proof=None,
                environment={},
            )

        try:
            returned = self.objective(assignment.spec, assignment.seed, report)
            metrics = self._complete(self._named(returned))
            refuse_not_finite(metrics, "the end")
        except EndedEarlyError as end:
            partial = last[-1].metrics if last and end.outcome == "stopped" else None
            return result(end.outcome, str(end), partial)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # an objective may even call sys.exit()
            return failure_of(error)
        return result("completed", "", metrics)

    def close(self) -> None:
        """Has nothing to close."""

    def _named(self, value: Any) -> dict[str, float]:
        if isinstance(value, Mapping):
            metrics = {str(name): number(v, str(name)) for name, v in value.items()}
            if self.metric not in metrics:
                raise InputError(
                    f"objective {objective_name(self.objective)} returned "
                    f"{', '.join(metrics) or 'nothing'} but not {self.metric!r}, which ranks; "
                    "return it or name another with metric="
                )
            return metrics
        return {self.metric: number(value, self.metric)}

    def _complete(self, metrics: dict[str, float]) -> dict[str, float]:
        missing = [name for name in self.needed if name not in metrics]
        if missing:
            raise InputError(
                f"objective {objective_name(self.objective)} returned {', '.join(metrics)} but not "
                f"{', '.join(missing)}, which the study's objectives and limits name; return a "
                "dict with all of them"
            )
        return metrics


def number(value: Any, name: str) -> float:
    """Returns a metric as a float.

    Raises:
        InputError: It is none.
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"metric {name!r}: expected a number, got {value!r:.60}") from None


def refuse_not_finite(metrics: Metrics, when: str) -> None:
    """Ends the trial as diverged where a metric is NaN or infinite."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise EndedEarlyError("diverged", f"{name} is {value} at {when}")


def costs(spec: EncoderSpec) -> Costs:
    """Returns the parameters and FLOPs of the architecture; nothing is allocated or timed."""
    from mixers.cost import count_flops, count_parameters

    return Costs(
        params=count_parameters(spec),
        flops=count_flops(spec),
        step_s=None,
        latency_s=None,
        peak_memory_bytes=0,
    )
