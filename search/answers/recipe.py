"""Whether the verdicts depend on the learning rate: the sweep, and both margins.

Where the best rates of the compared stacks are apart, each finalist was confirmed at several rates.
Its *own* rate is the one with the better selection objective over the confirmation seeds. The
verdict is that of the stacks at their own rates, and it needs the same sign at the shared rate:
else the order of the two depends on the recipe, and nothing is said of them. The better of several
noisy readings is read too well, so each contrast counts once for every rate that was to choose
from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from search.answers.arms import Arm, Finalists, arms_of, value_of
from search.answers.family import Family
from search.answers.intervals import Interval
from search.answers.question import Question
from search.answers.verdicts import (
    UNDECIDED,
    Against,
    Contrast,
    Verdict,
    comparisons_of,
    judged,
)
from search.rows import TrialRow
from search.spec.sweep import Sweep, rate_of

DEPENDS = "the sign depends on the learning rate"


@dataclass(frozen=True, slots=True)
class SweptRates:
    """A pure stack of the sweep.

    Attributes:
        role: its name among the baselines.
        code: one character a layer.
        readings: (rate, objective on selection) of the ended runs; None where it diverged.
        best: the best rate; None where a rate of the sweep has not ended.
        at_edge: the best rate is known and the lowest or the highest tried, so a better one may
            lie beyond.
    """

    role: str
    code: str
    readings: tuple[tuple[float, float | None], ...]
    best: float | None
    at_edge: bool


@dataclass(frozen=True, slots=True)
class Margin:
    """One contrast of the verdicts at the shared rate and at each stack's own.

    The intervals are of (candidate - other) on the test split, at the level of the verdicts.
    """

    against: Against
    candidate: str
    other: str
    candidate_rate: float
    other_rate: float
    shared: Interval | None
    own: Interval | None
    same_sign: bool


@dataclass(frozen=True, slots=True)
class RecipeCheck:
    """What the sweep says.

    Attributes:
        shared: the study's learning rate.
        rates: all rates of the sweep.
        stacks: the stacks with a run of the sweep.
        not_swept: roles of the stacks of which some rate is missing.
        apart: rates, beside the shared one, at which the finalists were to be confirmed.
        is_known: the best rate of every mixer of the compared stacks is known.
        margins: the contrasts of which a side has another rate than the shared one.
    """

    shared: float
    rates: tuple[float, ...]
    stacks: tuple[SweptRates, ...]
    not_swept: tuple[str, ...]
    apart: tuple[float, ...]
    is_known: bool
    margins: tuple[Margin, ...]


def at_shared_recipe(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """Returns the trials of the study's own recipe; the others compare with nothing else."""
    return [row for row in rows if not row.recipe]


def check_recipe(
    rows: Sequence[TrialRow],
    finalists: Finalists,
    contrasts: tuple[Contrast, ...],
    question: Question,
    family: Family,
) -> tuple[tuple[Contrast, ...], RecipeCheck | None]:
    """Returns the verdicts that hold under both recipes, and what the sweep says.

    Args:
        rows: all trials of the study, of every recipe.
        finalists: their runs at the shared rate.
        contrasts: the verdicts at the shared rate.
        question: the study's facts.
        family: the family of the verdicts.
    """
    sweep = question.sweep
    if sweep is None:
        return contrasts, None
    pair = [arm.mixers for arm in (finalists.candidate, finalists.reference) if arm is not None]
    apart = sweep.rates_apart(rows, pair)
    own_of = _own_rates(rows, finalists, apart, question)
    margins: tuple[Margin, ...] = ()
    if apart:
        own = Finalists(
            **{
                name: own_of[arm.arch_id][1] if arm is not None else None
                for name, arm in finalists.named().items()
            }
        )
        of_own = judged(comparisons_of(own), question, family.chosen_from(1 + len(apart)))
        margins = tuple(
            _margin(shared, other, own_of)
            for shared, other in zip(contrasts, of_own, strict=True)
            if own_of[shared.candidate_id][0] != sweep.shared
            or own_of[shared.other_id][0] != sweep.shared
        )
        held = {margin.against: margin for margin in margins}
        contrasts = tuple(
            _judged_by_both(shared, other, held.get(shared.against))
            for shared, other in zip(contrasts, of_own, strict=True)
        )
    stacks = _stacks(rows, sweep)
    best, readings = sweep.best_rates(rows), sweep.readings(rows)
    return contrasts, RecipeCheck(
        shared=sweep.shared,
        rates=sweep.rates,
        stacks=stacks,
        not_swept=tuple(
            stack.role for stack in sweep.stacks if len(readings[stack.labels]) < len(sweep.rates)
        ),
        apart=apart,
        is_known=bool(pair) and all((m,) * question.n_layers in best for m in set().union(*pair)),
        margins=margins,
    )


def _own_rates(
    rows: Sequence[TrialRow], finalists: Finalists, apart: Sequence[float], question: Question
) -> dict[str, tuple[float, Arm]]:
    """Architecture -> its better rate by selection over the confirmation seeds, with its runs."""
    assert question.sweep is not None
    shared = question.sweep.shared
    arms = {shared: {arm.arch_id: arm for arm in finalists.named().values() if arm is not None}}
    for rate in apart:
        of_rate = [row for row in rows if row.recipe and rate_of(row, shared) == rate]
        arms[rate] = {arm.arch_id: arm for arm in arms_of(of_rate, question)}
    own = {}
    for arch_id, arm in arms[shared].items():
        scored = [
            (question.sign * mean, rate != shared, rate)
            for rate, found in arms.items()
            if arch_id in found and (mean := _confirmed_selection(found[arch_id], question))
        ]
        rate = min(scored)[2] if scored else shared
        own[arch_id] = (rate, arms[rate].get(arch_id, arm))
    return own


def _confirmed_selection(arm: Arm, question: Question) -> float | None:
    found = [
        value
        for row in arm.rows
        if row.phase == "confirm"
        and (value := value_of(row.selection, question.objective)) is not None
    ]
    return fmean(found) if found else None


def _margin(shared: Contrast, own: Contrast, own_of: dict[str, tuple[float, Arm]]) -> Margin:
    ends = [contrast.interval for contrast in (shared, own)]
    signs = {interval.estimate > 0 for interval in ends if interval is not None}
    return Margin(
        against=shared.against,
        candidate=shared.candidate,
        other=shared.other,
        candidate_rate=own_of[shared.candidate_id][0],
        other_rate=own_of[shared.other_id][0],
        shared=shared.interval,
        own=own.interval,
        same_sign=None not in ends and len(signs) == 1,
    )


def _judged_by_both(shared: Contrast, own: Contrast, margin: Margin | None) -> Contrast:
    """The verdict at the own rates, if the shared rate has the same sign or the same word."""
    if margin is None:
        return own
    agree = margin.same_sign or shared.verdict.word == own.verdict.word
    if agree or own.verdict.word == UNDECIDED:
        return own
    return replace(own, verdict=Verdict(UNDECIDED, reason=DEPENDS), beats=UNDECIDED)


def _stacks(rows: Sequence[TrialRow], sweep: Sweep) -> tuple[SweptRates, ...]:
    codes = {row.mixers: row.code for row in rows}
    best, found = sweep.best_rates(rows), []
    for stack in sweep.stacks:
        readings = sweep.readings(rows)[stack.labels]
        if not readings:
            continue
        rate = best.get(stack.labels)
        found.append(
            SweptRates(
                role=stack.role,
                code=codes[stack.labels],
                readings=tuple(sorted(readings.items())),
                best=rate,
                at_edge=rate in (sweep.rates[0], sweep.rates[-1]),
            )
        )
    return tuple(found)
