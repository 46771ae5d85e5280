"""Effects of cheap layers from a design: their count, their position given the count, each layer.

In this order, because a count alone can explain nearly everything: an additive model of the layers
would then print one confident number for each layer, and all of them would mean the count. All of
it is read on the selection split, and none of it is a verdict of the study.

The *count* is tested by a one-way analysis of variance over the counts, the *position given the
count* by what the layers explain beside them. With several seeds of each stack the error of both is
that of the seeds, and position is all that differs between stacks of one count.

A *layer averaged over the design* is the main effect: the mean of the stacks that have it cheap
minus the mean of the others. A *layer in the stack* is the difference between the pick and the
stack that has this one layer changed, over the seeds that both have. Where layers interact the two
differ, and neither is wrong: the first is about stacks in general, the second about one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from search.answers.anova import FTest, Squares, f_test, indicators, residual, two_way_residual
from search.answers.design_layers import NO_ERROR, DesignLayer, layers_of, move_weights
from search.answers.design_table import Table, readings_of, table_of
from search.answers.family import ALPHA, Family
from search.answers.intervals import Difference, Interval, Part
from search.answers.question import Question
from search.answers.variance import ENOUGH_DF, POOLED_ABOVE, few_words, pooled
from search.answers.verdicts import UNDECIDED, turned
from search.rows import TrialRow

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class DesignError:
    """The standard deviation of one run that the design's intervals rest on.

    Attributes:
        sd: None where nothing shows it.
        df: Its degrees of freedom.
        source: ``seeds`` (stacks x seeds, with the seeds as blocks), ``lack of fit`` (what count
            and layers leave unexplained), ``repeats`` (the spread of fresh seeds) or ``lack of fit
            and repeats`` (both, where they agree).
        reason: What is to be said about it; empty where there is nothing.
    """

    sd: float | None
    df: int
    source: str
    reason: str

    def part(self, squares: float) -> tuple[Part, ...]:
        """Variance of a weighted sum of runs, of the weights' sum of squares; () if unknown."""
        return () if self.sd is None else (Part(self.sd**2 * squares, self.df),)


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
    count_test, position_test, together_test = tests_of(table)
    placed = error if len(table.seeds) == 1 else _error(placed_residual(table), "seeds")
    moves = moves_of(table, placed)
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
        position_test=position_test,
        position_word=_position_word(position_test, moves, question),
        together_test=together_test,
        move=max(moves, key=lambda move: abs(move.interval.estimate), default=None),
        stack=codes.get(pick) if pick else None,
        layers=layers_of(table, error.part, readings, pick, question, family),
    )


def error_of(table: Table) -> DesignError:
    """Finds the error: the seeds', else the lack of fit, the repeats, or both pooled.

    The repeats count where they agree with each other. Alone they are the error where the lack of
    fit is larger than they allow: then layers act together, which a contrast of stacks includes.
    """
    if len(table.seeds) > 1:
        return _error(two_way_residual(table.y), "seeds")
    lack, repeats = lack_of_fit(table), repeats_of(table)
    if lack.df < 1 or lack.total <= 0 or repeats is None:
        return _error(lack, "lack of fit")
    lower = float(stats.f.cdf(lack.mean / repeats.mean, lack.df, repeats.df))
    if lower >= 1 - ALPHA:
        return _error(repeats, "repeats")
    if 2 * min(lower, 1 - lower) <= POOLED_ABOVE:
        return _error(lack, "lack of fit")
    both = Squares(lack.total + repeats.total, lack.df + repeats.df)
    return _error(both, "lack of fit and repeats")


def lack_of_fit(table: Table) -> Squares:
    """What counts and additive layers leave of the stacks' means."""
    return residual(np.hstack([indicators(table.counts), table.x]), table.means)


def repeats_of(table: Table) -> Squares | None:
    """The spread of fresh seeds; None where stacks do not agree in it, or it is hardly known."""
    pool = pooled(table.repeats)
    if pool.sd is None or pool.df < ENOUGH_DF:
        return None
    return Squares(pool.sd**2 * pool.df, pool.df)


def _error(squares: Squares, source: str) -> DesignError:
    if squares.df < 1 or squares.total <= 0:
        return DesignError(None, max(0, squares.df), source, NO_ERROR)
    return DesignError(math.sqrt(squares.mean), squares.df, source, few_words(squares.df))


def tests_of(table: Table) -> tuple[FTest | None, FTest | None, FTest | None]:
    """Tests the count, the position given the count, and whether layers act together."""
    counts, means, n_seeds = table.counts, table.means, len(table.seeds)
    within = residual(indicators(counts), means)
    between = residual(np.ones((len(means), 1)), means) - within
    lack = lack_of_fit(table)
    if n_seeds > 1:
        between, within, lack = (
            Squares(n_seeds * part.total, part.df) for part in (between, within, lack)
        )
        placed = placed_residual(table)
        return (
            f_test(between, two_way_residual(table.y)),
            f_test(within, placed),
            f_test(lack, placed),
        )
    repeats = repeats_of(table)
    together = f_test(lack, repeats) if repeats is not None else None
    return f_test(between, within), f_test(within - lack, lack), together


def placed_residual(table: Table) -> Squares:
    """The seeds' noise of the stacks whose count others share: only these speak of places.

    All-attention stands alone with its count, and its noise can be several times the others'.
    """
    shared = [table.counts.count(count) > 1 for count in table.counts]
    return two_way_residual(table.y[shared]) if any(shared) else Squares(0.0, 0)


def counts_of(table: Table, error: DesignError) -> tuple[DesignCount, ...]:
    """Means by count, each with its own 95 % interval."""
    found = []
    for count in sorted(set(table.counts)):
        values = table.y[[n == count for n in table.counts]]
        mean = Difference(float(values.mean()), error.part(1 / values.size), error.reason)
        found.append(DesignCount(count, len(values), mean.interval(LEVEL)))
    return tuple(found)


def moves_of(table: Table, error: DesignError) -> list[Move]:
    """Every move of one cheap layer that the design can tell; the intervals hold together."""
    n_layers = len(table.screening.layers)
    pairs = list(combinations(range(n_layers), 2))
    level = 1 - ALPHA / max(1, len(pairs))
    n_seeds = len(table.seeds)
    moves = []
    for origin, target in pairs:
        weights = move_weights(table, origin, target)
        if weights is None:
            continue
        part = error.part(float(weights @ weights) / n_seeds)
        interval = Difference(float(weights @ table.means), part, error.reason).interval(level)
        layers = table.screening.layers
        moves.append(Move(layers[origin], layers[target], interval))
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
