"""Checks of a study's objectives, metrics and limits, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from search.spec.measures import Measure, measure_of

if TYPE_CHECKING:
    from search.spec.study import StudySpec

Path = tuple[str | int, ...]


def measure_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    """Yields (path, what is wrong and what to do)."""
    found = [*_objective_problems(study), *_metric_problems(study)]
    yield from found
    if not found:
        yield from _limit_problems(study)


def _objective_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    for path, measure in _named(study, "objectives", "objective"):
        if isinstance(measure, str):
            yield path, measure
        elif path[1] == 0 and measure.origin != "metric":
            yield (
                path,
                f"{measure.name!r} is a cost; the first objective ranks and has the verdicts and "
                "the tolerance, so put a metric before it, or make the cost a limit",
            )


def _metric_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    for path, measure in _named(study, "metrics", "metric"):
        if isinstance(measure, str):
            yield path, measure
        elif measure.origin != "metric":
            yield path, f"{measure.name!r} is a cost: every trial records it, so leave it out here"


def _named(study: StudySpec, field: str, noun: str) -> Iterator[tuple[Path, Measure | str]]:
    """Yields the path of each name with its measure, or with what is wrong with the name."""
    names: Sequence[str] = getattr(study, field)
    for index, name in enumerate(names):
        path: Path = (field, index)
        if name in names[:index]:
            yield path, f"{noun} {name!r} is named twice"
            continue
        try:
            yield path, measure_of(study, name)
        except ValueError as error:
            yield path, str(error)


def _limit_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    from search.spec.limits import limits_of

    for limit in limits_of(study):
        name = limit.measure.name
        if limit.measure.origin == "metric" and name not in study.trained_metrics:
            yield (
                ("limits", limit.name),
                f"{name!r} is neither an objective nor a metric of the study; add it to metrics",
            )
