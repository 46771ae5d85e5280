"""The runs of a design as a table: which layers are cheap, and what each stack was worth.

Three kinds of studies have one: those that ran a screening design, whose runs were fixed before
any result; listed studies; and any study that trained every stack of the reference and one other
mixer, where nothing is left to choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from search.answers.arms import EXPLORATION, value_of
from search.answers.question import Question
from search.rows import TrialRow
from search.strategies.screen_design import Run
from search.strategies.screen_plan import NOTE, Screening

Labels = tuple[str, ...]
LIST, FACTORIAL = "list", "full factorial"
FEWEST_CELLS = 3
MOST_COMPLETE = 12
"""Layers of which all stacks may be looked for: 4,096 of them."""

Readings = Mapping[tuple[Labels, int], float]
"""Objective on the selection split by architecture and seed index."""

Weights = Mapping[tuple[Labels, int], float]
"""A weighted sum of readings."""


@dataclass(frozen=True)
class Table:
    """Cells of a two-level design with their readings.

    Attributes:
        screening: The two mixers and the layers they vary in.
        kind: ``full factorial``, ``folded Plackett-Burman``, ``ladder of counts`` or ``list``.
        planned: All runs of the design.
        base: Those of its orthogonal part.
        runs: The runs with a result, in the design's order.
        y: Their objective on the selection split, (runs, seeds).
        seeds: Indices of the seeds.
        repeats: Readings of stacks that were trained with several seeds, by architecture: fresh
            seeds beside the design's own, or all seeds of the table less what each adds to all.
    """

    screening: Screening
    kind: str
    planned: tuple[Run, ...]
    base: frozenset[Run]
    runs: tuple[Run, ...]
    y: np.ndarray
    seeds: tuple[int, ...]
    repeats: Mapping[Labels, tuple[float, ...]] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every run of the design has a result."""
        return len(self.runs) == len(self.planned)

    @property
    def x(self) -> np.ndarray:
        """1 where a layer is cheap, 0 where not, (runs, layers)."""
        return np.array(self.runs, dtype=np.float64)

    @property
    def counts(self) -> tuple[int, ...]:
        """Cheap layers of each run."""
        return tuple(sum(run) for run in self.runs)

    @property
    def means(self) -> np.ndarray:
        """Mean over the seeds, (runs,)."""
        averaged: np.ndarray = self.y.mean(axis=1)
        return averaged

    def only(self, kept: Sequence[bool]) -> Table:
        """Returns the table of some of the runs."""
        runs = tuple(run for run, keep in zip(self.runs, kept, strict=True) if keep)
        return replace(self, runs=runs, y=self.y[list(kept)])

    def weights(self, of_runs: np.ndarray) -> Weights:
        """Writes weights of the runs' means as weights of readings."""
        share = 1.0 / len(self.seeds)
        return {
            (self.screening.labels(run), seed): weight * share
            for run, weight in zip(self.runs, of_runs.tolist(), strict=True)
            for seed in self.seeds
        }


def readings_of(rows: Sequence[TrialRow], question: Question) -> Readings:
    """Reads the completed exploration and confirmation runs on the selection split."""
    found: dict[tuple[Labels, int], float] = {}
    for row in sorted(rows, key=lambda row: row.number):
        if row.state != "completed" or row.phase not in EXPLORATION | {"confirm"} or row.recipe:
            continue
        value = value_of(row.selection, question.objective)
        if value is not None:
            found.setdefault((row.mixers, row.seed_index), value)
    return found


def table_of(rows: Sequence[TrialRow], question: Question) -> Table | None:
    """Returns the table of a study that has one with at least three cells."""
    readings = readings_of(rows, question)
    begun = next(
        (row.sampler_attrs[NOTE] for row in by_number(rows) if NOTE in row.sampler_attrs), None
    )
    found: Table | None
    if begun is not None:
        found = _screened(Screening.of_note(begun), readings)
    elif question.is_listed:
        found = _listed(readings, question)
    else:
        found = next(_complete(readings, question), None)
    return found if found is not None and len(found.runs) >= FEWEST_CELLS else None


def by_number(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """The rows in the order of their trials."""
    return sorted(rows, key=lambda row: row.number)


def _screened(screening: Screening, readings: Readings) -> Table:
    """The design's runs with the study's own seed; fresh seeds are repeats."""
    design = screening.design
    done = [run for run in design.runs if (screening.labels(run), 0) in readings]
    fresh: dict[Labels, list[float]] = {}
    for (labels, seed_index), value in readings.items():
        if seed_index > 0 and screening.run(labels) in design.runs:
            fresh.setdefault(labels, []).append(value)
    return Table(
        screening,
        design.kind,
        design.runs,
        frozenset(design.base),
        tuple(done),
        np.array([[readings[screening.labels(run), 0]] for run in done]).reshape(-1, 1),
        (0,),
        {labels: tuple(group) for labels, group in fresh.items()},
    )


def _listed(readings: Readings, question: Question) -> Table | None:
    """The listed stacks of the reference and the cheap mixer, in the seeds that all of them had."""
    screening = _between(question.cheap, question)
    by_run = _by_run(screening, readings)
    is_factorial = len(by_run) == 2**question.n_layers
    return _crossed(screening, FACTORIAL if is_factorial else LIST, by_run)


def _complete(readings: Readings, question: Question) -> Iterator[Table]:
    """The full factorials that the study happens to hold, the baselines' cheap mixer first."""
    if question.n_layers > MOST_COMPLETE:
        return
    others = dict.fromkeys(label for labels, _ in readings for label in labels)
    for cheap in dict.fromkeys([question.cheap, *others]):
        if cheap == question.reference:
            continue
        screening = _between(cheap, question)
        by_run = _by_run(screening, readings)
        if len(by_run) == 2**question.n_layers:
            table = _crossed(screening, FACTORIAL, by_run)
            if table is not None:
                yield table


def _by_run(screening: Screening, readings: Readings) -> dict[Run, dict[int, float]]:
    found: dict[Run, dict[int, float]] = {}
    for (labels, seed_index), value in readings.items():
        run = screening.run(labels)
        if run is not None:
            found.setdefault(run, {})[seed_index] = value
    return found


def _crossed(
    screening: Screening, kind: str, by_run: Mapping[Run, Mapping[int, float]]
) -> Table | None:
    """Stacks x seeds, of the seeds that all stacks have."""
    shared = set.intersection(*(set(values) for values in by_run.values())) if by_run else set()
    if not shared:
        return None
    seeds, runs = tuple(sorted(shared)), tuple(sorted(by_run, key=lambda run: (sum(run), run)))
    y = np.array([[by_run[run][seed] for seed in seeds] for run in runs])
    stacks = [screening.labels(run) for run in runs]
    alike = (y - y.mean(axis=0)).tolist() if len(seeds) > 1 else []
    repeats = {labels: tuple(row) for labels, row in zip(stacks, alike, strict=False)}
    return Table(screening, kind, runs, frozenset(runs), runs, y, seeds, repeats)


def _between(cheap: str, question: Question) -> Screening:
    """All layers between the reference and one other mixer."""
    layers = tuple(range(question.n_layers))
    return Screening(question.reference, cheap, layers, (question.reference,) * question.n_layers)
