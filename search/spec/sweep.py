"""The sweep of learning rates: which stacks are trained at which rates, and what it shows.

A mixer may look worse only because the study's learning rate suits it worse. Under `recipe: sweep`
each pure stack is trained at several rates. The runs at the study's own rate are its baselines and
are trained once. Where the best rates of the reference and of the candidate's mixers differ by a
factor of two or more, the finalists are confirmed at those rates too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.rows import TrialRow
from search.spec.space import Labels

if TYPE_CHECKING:
    from search.spec.study import StudySpec

FACTORS = (0.5, 1.0, 2.0)
FEWEST_RATES = 3
ENDED = frozenset({"completed", "diverged"})
APART = 2.0
"""Best rates that differ by this factor or more are not the same recipe."""

Recipe = Mapping[str, float]


@dataclass(frozen=True)
class SweptStack:
    """A pure stack of the sweep: its role among the baselines and its layers."""

    role: str
    labels: Labels


@dataclass(frozen=True)
class Sweep:
    """A study's sweep.

    Attributes:
        shared: The study's own learning rate.
        rates: All rates, rising; the shared one is among them.
        stacks: The pure stacks, in the order in which they are swept.
        objective: Name of the metric that ranks.
        sign: 1 where low values are good, else -1.
    """

    shared: float
    rates: tuple[float, ...]
    stacks: tuple[SweptStack, ...]
    objective: str
    sign: float

    @classmethod
    def of(cls, study: StudySpec) -> Sweep | None:
        """Returns the sweep of a study, None where one recipe is used for all."""
        from search.spec.baselines import baselines

        if study.recipe != "sweep":
            return None
        depth = study.encoder.n_layers
        pure = [
            SweptStack(baseline.role, baseline.labels)
            for baseline in baselines(study)
            if len(baseline.labels) == depth and len(set(baseline.labels)) == 1
        ]
        first = ("reference", "cheap", "reference_learned_positions")
        order = {role: place for place, role in enumerate(first)}
        pure.sort(key=lambda stack: order.get(stack.role, len(order)))
        return cls(
            shared=study.training.learning_rate,
            rates=sweep_rates(study),
            stacks=tuple(pure),
            objective=study.objective,
            sign=1.0 if study.direction == "minimize" else -1.0,
        )

    def recipe(self, rate: float) -> Recipe:
        """Returns what a training at a rate changes; nothing at the shared one."""
        return {} if rate == self.shared else {"learning_rate": rate}

    def runs(self) -> Iterator[tuple[SweptStack, Recipe]]:
        """Yields the trainings of the sweep beside the baselines, stack by stack."""
        for stack in self.stacks:
            for rate in self.rates:
                if rate != self.shared:
                    yield stack, self.recipe(rate)

    def readings(self, rows: Iterable[TrialRow]) -> dict[Labels, dict[float, float | None]]:
        """Returns the objective of each swept stack by rate; None for a trial that diverged."""
        found: dict[Labels, dict[float, float | None]] = {s.labels: {} for s in self.stacks}
        for row in rows:
            if row.seed_index == 0 and row.mixers in found and row.state in ENDED:
                value = row.selection.get(self.objective) if row.state == "completed" else None
                found[row.mixers].setdefault(rate_of(row, self.shared), value)
        return found

    def best_rates(self, rows: Iterable[TrialRow]) -> dict[Labels, float]:
        """Returns the best rate of every stack that was tried at all of them."""
        best = {}
        for labels, values in self.readings(rows).items():
            known = {rate: value for rate, value in values.items() if value is not None}
            if set(values) >= set(self.rates) and known:
                best[labels] = min(known, key=lambda rate: (self.sign * known[rate], rate))
        return best

    def rates_apart(self, rows: Iterable[TrialRow], stacks: Sequence[Labels]) -> tuple[float, ...]:
        """Returns the rates, beside the shared one, at which finalists are confirmed.

        Args:
            rows: The study's trials.
            stacks: Layers of the finalists that the first contrast compares; the best rates of
                the pure stacks of their mixers count.
        """
        mixers = {label for labels in stacks for label in labels}
        best = [
            rate for labels, rate in self.best_rates(rows).items() if labels and labels[0] in mixers
        ]
        if not best or max(best) < APART * min(best):
            return ()
        return tuple(sorted({min(best), max(best)} - {self.shared}))


def rate_of(row: TrialRow, shared: float) -> float:
    """Returns the learning rate that a trial was trained with."""
    return row.recipe.get("learning_rate", shared)


def sweep_rates(study: StudySpec) -> tuple[float, ...]:
    """Returns the rates of a study's sweep, rising, its own rate among them."""
    own = study.training.learning_rate
    given = study.training.sweep_rates or tuple(factor * own for factor in FACTORS)
    return tuple(sorted({own, *given}))


def sweep_problems(study: StudySpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields (path, what is wrong and what to do) for the settings of a sweep."""
    from search.spec.listed import is_listed
    from search.tasks.objective import ObjectiveConfig

    if study.recipe == "shared":
        if study.training.sweep_rates:
            yield (
                ("training", "sweep_rates"),
                "nothing is swept under recipe: shared; set recipe: sweep or leave them out",
            )
        return
    if isinstance(study.task, ObjectiveConfig):
        yield ("recipe",), "an own objective has no learning rate to sweep; use recipe: shared"
    elif not is_listed(study) and len(sweep_rates(study)) < FEWEST_RATES:
        yield (
            ("training", "sweep_rates"),
            f"a sweep needs {FEWEST_RATES} rates, training.learning_rate among them; name more",
        )
