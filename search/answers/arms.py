"""Architectures with their runs, and the finalists among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from mixers.notation import kind_of
from search.answers.intervals import sd
from search.answers.question import Question
from search.rows import TrialRow

EXPLORATION = frozenset({"baseline", "screen", "search"})


@dataclass(frozen=True, slots=True)
class Arm:
    """An architecture and the completed runs of it.

    Attributes:
        selection: exploration runs' objective on the selection split, by seed; all runs' in a
            listed study.
        test: confirmation runs' objective on the test split, by seed.
        rows: the completed runs, in order of the trials.
        roles: names as a baseline, in order of the trials.
    """

    arch_id: str
    notation: str
    code: str
    mixers: tuple[str, ...]
    n_layers: int
    selection: Mapping[int, float]
    test: Mapping[int, float]
    rows: tuple[TrialRow, ...]
    roles: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of mixers that occur."""
        return frozenset(kind_of(mixer) for mixer in self.mixers)

    @property
    def is_uniform(self) -> bool:
        """The same mixer in all layers."""
        return len(set(self.mixers)) == 1

    @property
    def explored(self) -> tuple[TrialRow, ...]:
        """The runs that ``selection`` was read from."""
        return tuple(row for row in self.rows if row.seed in self.selection)

    @property
    def selection_mean(self) -> float | None:
        """Mean objective on the selection split over the exploration runs."""
        return fmean(self.selection.values()) if self.selection else None

    @property
    def test_values(self) -> tuple[float, ...]:
        """Objective on the test split, in order of the seeds."""
        return tuple(self.test[seed] for seed in sorted(self.test))

    @property
    def test_mean(self) -> float | None:
        """Mean objective on the test split over the confirmation runs."""
        return fmean(self.test_values) if self.test else None

    @property
    def test_sd(self) -> float | None:
        """Repeat SD on the test split; None where not measurable."""
        return sd(self.test_values)

    @property
    def route(self) -> Mapping[str, Any] | None:
        """How far the stack carries information; None where that was not found out."""
        return next((row.route for row in self.rows if row.route), None)

    def n_of(self, kind: str) -> int:
        """Number of layers with a mixer of this kind."""
        return sum(kind_of(mixer) == kind for mixer in self.mixers)

    def cost(self, field: str) -> float | None:
        """Median over the runs of a cost field of the rows (``params``, ``step_s``, ...)."""
        return middle(getattr(row, field) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Finalists:
    """The architectures that are confirmed; an absent one was never trained.

    ``candidate`` is the architecture held against all-attention: the pick, or the rival where the
    pick is all-attention itself.
    """

    pick: Arm | None
    reference: Arm | None
    shorter: Arm | None
    rival: Arm | None

    @property
    def candidate(self) -> Arm | None:
        """The architecture whose layers may be cheap."""
        if self.pick and self.reference and self.pick.arch_id == self.reference.arch_id:
            return self.rival
        return self.pick

    def names_of(self, arch_id: str) -> tuple[str, ...]:
        """Finalist names of an architecture."""
        return tuple(name for name, arm in self.named().items() if arm and arm.arch_id == arch_id)

    def named(self) -> dict[str, Arm | None]:
        """The finalists by name, in the order in which they are confirmed."""
        return {
            "pick": self.pick,
            "reference": self.reference,
            "shorter": self.shorter,
            "rival": self.rival,
        }


def value_of(metrics: Mapping[str, float], name: str) -> float | None:
    """A metric's finite value or None."""
    value = metrics.get(name)
    return float(value) if value is not None and math.isfinite(value) else None


def explored_rows(rows: Iterable[TrialRow], question: Question) -> Iterator[TrialRow]:
    """The trials that show the selection split: all of a listed study, else the exploration.

    Trials of another recipe than the study's are not among them.
    """
    for row in rows:
        if not row.recipe and (question.is_listed or row.phase in EXPLORATION):
            yield row


def middle(values: Iterable[float | None]) -> float | None:
    """Median of the finite values, None if there is none."""
    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    return float(median(known)) if known else None


def arms_of(rows: Sequence[TrialRow], question: Question) -> tuple[Arm, ...]:
    """Gathers completed trials by architecture, in order of their first trial."""
    grouped: dict[str, list[TrialRow]] = {}
    for row in sorted(rows, key=lambda row: row.number):
        if row.state == "completed" and row.arch_id is not None and row.phase != "recipe":
            grouped.setdefault(row.arch_id, []).append(row)
    return tuple(arm_of(members, question) for members in grouped.values())


def arm_of(rows: Sequence[TrialRow], question: Question) -> Arm:
    """Gathers the completed trials of one architecture, at least one, in order of the trials."""
    selection: dict[int, float] = {}
    test: dict[int, float] = {}
    for row in rows:
        is_test = row.phase == "confirm"
        read = [(test, row.test)] if is_test else []
        if question.is_listed or not is_test:
            read.append((selection, row.selection))
        for target, metrics in read:
            value = value_of(metrics, question.objective)
            if value is not None:
                target.setdefault(row.seed, value)
    first = rows[0]
    roles = dict.fromkeys(row.role for row in rows if row.phase == "baseline" and row.role)
    return Arm(
        arch_id=first.arch_id or "",
        notation=first.notation,
        code=first.code,
        mixers=first.mixers,
        n_layers=first.n_layers,
        selection=selection,
        test=test,
        rows=tuple(rows),
        roles=tuple(roles),
    )


def finalists_of(
    arms: Sequence[Arm], chosen: Mapping[str, Sequence[str]], question: Question
) -> Finalists:
    """Finds the finalists' runs.

    Args:
        arms: the study's architectures.
        chosen: each finalist's name with the notation of its layers; an architecture that is two
            finalists at once may appear once.
        question: the study's facts.
    """
    by_layers = {arm.mixers: arm for arm in arms}
    found = {name: by_layers.get(tuple(layers)) for name, layers in chosen.items()}
    pick, reference = found.get("pick"), found.get("reference")
    if reference is None and pick is not None and pick.kinds == {kind_of(question.reference)}:
        reference = pick
    return Finalists(pick, reference, found.get("shorter"), found.get("rival"))
