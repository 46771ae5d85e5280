"""Effects of cheap layers from a design: their count, their position given the count, each layer.

In this order, because a count alone can explain nearly everything: an additive model of the layers
would then print one confident number for each layer, and all of them would mean the count. All of
it is read on the selection split, and none of it is a verdict of the study.

The *count* is tested by a one-way analysis of variance over the counts, the *position given the
count* by what the layers explain beside them. With several seeds of each stack the error of both is
that of the seeds, and position is all that differs between stacks of one count. The counts' degrees
of freedom are then lowered by how much they differ in their noise.

A *layer averaged over the design* is the main effect: the mean of the stacks that have it cheap
minus the mean of the others. A *layer in the stack* is the difference between the pick and the
stack that has this one layer changed, over the seeds that both have. Where layers interact the two
differ, and neither is wrong: the first is about stacks in general, the second about one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from search.answers.anova import (
    Estimates,
    FTest,
    Squares,
    f_test,
    indicators,
    residual,
    seeds_f_test,
    two_way_residual,
)
from search.answers.design_error import (
    DesignError,
    as_error,
    error_of,
    lack_of_fit,
    repeats_of,
    with_company,
)
from search.answers.design_layers import DesignLayer, layers_of
from search.answers.design_table import Table, readings_of, table_of
from search.answers.family import ALPHA, Family
from search.answers.intervals import Difference, Interval
from search.answers.question import Question
from search.answers.verdicts import UNDECIDED, turned
from search.rows import TrialRow

LEVEL = 0.95
FEWEST_RUNS = 2
WITHOUT_LONELY = "without stacks alone with their count, whose noise may not be the others'"


@dataclass(frozen=True, slots=True)
class DesignCount:
    """Stacks of the design with so many cheap layers: how many, and their mean objective."""

    n_cheap: int
    n: int
    mean: Interval


@dataclass(frozen=True, slots=True)
class Move:
    """Taking one cheap layer from one place to another, the count being the same.

    ``interval`` is of the change in the objective; it holds for all pairs of places together.
    """

    origin: int
    target: int
    interval: Interval


@dataclass(frozen=True, slots=True)
class Design:
    """What a design says.

    Attributes:
        kind: Which design it is.
        reference: Notation of the mixer to be replaced.
        cheap: Notation of its replacement.
        n_runs: Stacks with a result.
        n_planned: Stacks of the design; more than ``n_runs`` where it is incomplete.
        n_seeds: Seeds of each stack.
        error: What the intervals rest on.
        counts: Means by number of cheap layers.
        count_test: Whether the means differ; None where the design cannot tell.
        count_word: ``matters`` (p <= 0.05) or ``undecided``.
        count_reason: What the test leaves out.
        position_test: Whether the place matters, given the count; None where it cannot tell.
        position_word: ``matters``, ``no matter`` (every move lies within the tolerance) or
            ``undecided``.
        together_test: Whether layers act together, beyond what the count says; None where no
            noise of repeats is known to hold it against.
        move: The move that changes most.
        stack: Code of the pick, in which single layers are changed.
        layers: Layer by layer.
    """

    kind: str
    reference: str
    cheap: str
    n_runs: int
    n_planned: int
    n_seeds: int
    error: DesignError
    counts: tuple[DesignCount, ...]
    count_test: FTest | None
    count_word: str
    count_reason: str
    position_test: FTest | None
    position_word: str
    together_test: FTest | None
    move: Move | None
    stack: str | None
    layers: tuple[DesignLayer, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every run of the design has a result."""
        return self.n_runs == self.n_planned


def design_of(
    rows: Sequence[TrialRow],
    question: Question,
    pick: tuple[str, ...] | None,
    family: Family,
) -> Design | None:
    """Reads the effects of a study's design; None where it has none.

    Args:
        rows: The study's rows.
        question: The study's facts.
        pick: Notation of the layers of the recommended stack.
        family: How many contrasts of layers are looked at together.
    """
    table = table_of(rows, question)
    if table is None:
        return None
    error = error_of(table)
    placed = table.only(with_company(table))
    count_test, count_reason = count_test_of(table, placed, error)
    position_test, together_test = place_tests_of(placed)
    moves = moves_of(table, _of_places(placed, error))
    codes = {row.mixers: row.code for row in rows}
    readings = readings_of(rows, question)
    return Design(
        kind=table.kind,
        reference=table.screening.reference,
        cheap=table.screening.cheap,
        n_runs=len(table.runs),
        n_planned=len(table.planned),
        n_seeds=len(table.seeds),
        error=error,
        counts=counts_of(table, error),
        count_test=count_test,
        count_word=_matters(count_test),
        count_reason=count_reason,
        position_test=position_test,
        position_word=_position_word(position_test, moves, question),
        together_test=together_test,
        move=max(moves, key=lambda move: abs(move.interval.estimate), default=None),
        stack=codes.get(pick) if pick else None,
        layers=layers_of(table, error.parts, readings, pick, question, family),
    )


def count_test_of(table: Table, placed: Table, error: DesignError) -> tuple[FTest | None, str]:
    """Whether the means by count differ, and what the test leaves out.

    With several seeds their noise is seen, whether or not stacks differ in it; with one seed, and
    where they do, only the counts of several stacks are compared.
    """
    if len(table.seeds) > 1:
        counts = np.array(table.counts)
        means = [table.y[counts == n].mean(axis=0) for n in sorted(set(counts))]
        return seeds_f_test(np.array(means)), ""
    if error.agrees:
        return one_noise_test_of(table), ""
    return one_noise_test_of(placed), WITHOUT_LONELY


def one_noise_test_of(table: Table) -> FTest | None:
    """Between counts against within them, with one seed of each stack."""
    if len(table.runs) < FEWEST_RUNS:
        return None
    within = residual(indicators(table.counts), table.means)
    return f_test(residual(np.ones((len(table.runs), 1)), table.means) - within, within)


def place_tests_of(table: Table) -> tuple[FTest | None, FTest | None]:
    """Whether the place matters, given the count, and whether layers act together."""
    if len(table.runs) < FEWEST_RUNS:
        return None, None
    within = _scaled(residual(indicators(table.counts), table.means), table)
    lack = _scaled(lack_of_fit(table), table)
    if len(table.seeds) > 1:
        error = two_way_residual(table.y)
        return f_test(within, error), f_test(lack, error)
    repeats = repeats_of(table)
    return f_test(within - lack, lack), None if repeats is None else f_test(lack, repeats)


def _of_places(placed: Table, error: DesignError) -> DesignError:
    """With several seeds, the noise of those stacks alone that speak of places.

    All-attention has a count of its own, and its noise can be several times the others'.
    """
    if len(placed.seeds) == 1 or len(placed.runs) < FEWEST_RUNS:
        return error
    return as_error(two_way_residual(placed.y), "seeds", error.own)


def _scaled(squares: Squares, table: Table) -> Squares:
    """Sums of squares of means, as those of single runs."""
    return Squares(len(table.seeds) * squares.total, squares.df)


def counts_of(table: Table, error: DesignError) -> tuple[DesignCount, ...]:
    """Means by count, each with its own 95 % interval."""
    found = []
    for count in sorted(set(table.counts)):
        chosen = np.array([n == count for n in table.counts], dtype=np.float64)
        weights = chosen / chosen.sum()
        parts = error.parts(table.weights(weights))
        mean = Difference(float(weights @ table.means), parts, error.reason)
        found.append(DesignCount(count, int(chosen.sum()), mean.interval(LEVEL)))
    return tuple(found)


def moves_of(table: Table, error: DesignError) -> list[Move]:
    """Every move of one cheap layer that the design can tell; the intervals hold together.

    Least squares over counts and additive layers.
    """
    layers = table.screening.layers
    counts = indicators(table.counts)
    estimates, first = Estimates(np.hstack([counts, table.x])), counts.shape[1]
    pairs = list(combinations(range(len(layers)), 2))
    level = 1 - ALPHA / max(1, len(pairs))
    moves = []
    for origin, target in pairs:
        weights = estimates.weights({first + origin: -1.0, first + target: 1.0})
        if weights is not None:
            parts = error.parts(table.weights(weights))
            change = Difference(float(weights @ table.means), parts, error.reason)
            moves.append(Move(layers[origin], layers[target], change.interval(level)))
    return moves


def _matters(test: FTest | None) -> str:
    return "matters" if test is not None and test.p_value <= ALPHA else UNDECIDED


def _position_word(test: FTest | None, moves: Sequence[Move], question: Question) -> str:
    ends = [turned(move.interval, question) for move in moves]
    known = [pair for pair in ends if pair is not None]
    within = [low > -question.tolerance and high < question.tolerance for low, high in known]
    if known and len(known) == len(ends) and all(within):
        return "no matter"
    return _matters(test)
