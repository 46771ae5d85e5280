"""Verdicts: what an interval allows to be said, and how many runs would decide.

The question is non-inferiority. With d = (cheap - attention) in the objective's unit, turned so
that low is good, and the study's tolerance:

==================  ===========================================
``better``          the interval of d lies below 0
``may be cheap``    its upper end lies below the tolerance
``keep attention``  its lower end lies above the tolerance
``undecided``       anything else, and fewer than two runs an arm
==================  ===========================================

The interval holds the variance between seeds (each architecture's own, or that of the differences
where common seeds move together) and the evaluation error from the choice of test documents. Its
level is the one at which Holm's procedure over the declared family holds it against the borders
(`search.answers.family`).

A shorter model is asked the same question about its depth, d = (shorter - pick): ``shorter is
better``, ``may be shorter``, ``keep depth``, ``undecided``. A rival of the same depth is a plain
comparison, d = (pick - rival): ``better``, ``worse``, ``no difference`` (the interval lies within
the tolerance on both sides), ``undecided``. Estimates are always printed as pick minus other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from search.answers.arms import Arm, Finalists, middle
from search.answers.evaluation_error import EvaluationError, evaluation_error_of
from search.answers.family import ALPHA, Family, adjusted, holm
from search.answers.intervals import (
    IDENTICAL,
    MAX_RUNS,
    Difference,
    Interval,
    Part,
    difference,
    paired_difference,
    runs_needed,
)
from search.answers.pairing import Pairing, pairing_of
from search.answers.question import Question
from search.answers.variance import ENOUGH_DF
from search.rows import VerdictRow
from search.spec.budget import duration_words

FAMILY_LEVEL = 1.0 - ALPHA
WORTH_SAYING_S = 1.0
FEWEST_TO_DECIDE = 3
"""Runs per arm to ask for where nothing is measured: two a side decide next to nothing."""
UNDECIDED: Final = "undecided"
NO_NUMBER = "no number of runs decides it: too few test documents"
MAY_NOT_HELP = "more runs may not decide it: perhaps too few test documents"
MOST_RUNS = f"it would take more than {MAX_RUNS:,} runs a side"

Against = Literal["reference", "shorter", "rival"]
Beats = Literal["yes", "no", "undecided"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word of the vocabulary and, where undecided, what would decide.

    ``runs_per_arm`` is how many runs each arm needs in all, ``more_runs`` what is missing of them
    in both arms together. Both are None where more runs would not help, or perhaps not (identical
    repeats, too few test documents), and where the verdict is made.
    """

    word: str
    runs_per_arm: int | None = None
    more_runs: int | None = None
    more_seconds: float | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """The verdict as printed and stored."""
        if self.word != UNDECIDED:
            return self.word
        if self.more_runs is None:
            return f"{UNDECIDED} ({self.reason})" if self.reason else UNDECIDED
        runs = f"{self.more_runs} more run{'' if self.more_runs == 1 else 's'}"
        if self.more_seconds is None or self.more_seconds < WORTH_SAYING_S:
            return f"{UNDECIDED} ({runs})"
        return f"{UNDECIDED} ({runs}, about {duration_words(self.more_seconds)})"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Candidate minus other on the test split: estimate, interval, verdict.

    Attributes:
        against: what the other is: ``reference``, ``shorter`` or ``rival``.
        candidate: code of the candidate, normally the pick.
        other: code of the other.
        interval: of candidate - other in the objective's unit; None if an arm has no run.
        n_candidate: confirmation runs of the candidate.
        n_other: confirmation runs of the other.
        beats: whether the candidate is better: ``no`` where it is worse, or ahead by less than
            the tolerance.
        verdict: the verdict.
        p_value: of the difference lying where the verdict would change, adjusted for the family
            and the look; decided where it is at most 0.05.
        evaluation: the part of the error from the choice of documents; None where unknown.
        pairing: whether runs with common seeds move together, and whether the interval is
            therefore paired; None below three seeds.
    """

    against: Against
    candidate: str
    candidate_id: str
    other: str
    other_id: str
    interval: Interval | None
    n_candidate: int
    n_other: int
    beats: Beats
    verdict: Verdict
    p_value: float | None = None
    evaluation: EvaluationError | None = None
    pairing: Pairing | None = None

    @property
    def has_few_df(self) -> bool:
        """Whether the interval, or the seeds in it, has fewer than 6 degrees of freedom."""
        if self.interval is None or self.interval.df is None:
            return False
        of_seeds: float = self.n_candidate + self.n_other - 2
        if self.pairing is not None and self.pairing.is_used:
            of_seeds = self.pairing.n - 1
        return min(self.interval.df, of_seeds) < ENOUGH_DF


def cheap_word(low: float, high: float, tolerance: float) -> str:
    """Verdict on the interval of (cheap - attention), low is good."""
    if high < 0:
        return "better"
    if high < tolerance:
        return "may be cheap"
    return "keep attention" if low > tolerance else UNDECIDED


def shorter_word(low: float, high: float, tolerance: float) -> str:
    """Verdict on the interval of (pick - shorter), low is good."""
    low, high = -high, -low
    if high < 0:
        return "shorter is better"
    if high < tolerance:
        return "may be shorter"
    return "keep depth" if low > tolerance else UNDECIDED


def rival_word(low: float, high: float, tolerance: float) -> str:
    """Verdict on the interval of (pick - rival), low is good."""
    if high < 0:
        return "better"
    if low > 0:
        return "worse"
    return "no difference" if -tolerance < low and high < tolerance else UNDECIDED


WORDS = {"reference": cheap_word, "shorter": shorter_word, "rival": rival_word}
BORDER = {"reference": 1.0, "shorter": -1.0, "rival": 0.0}  # in tolerances


def undecided_p(against: Against, difference: Difference, question: Question) -> float | None:
    """Largest alpha at which the interval of level 1 - alpha leaves the contrast undecided.

    It is the two-sided p-value of the border between the verdicts: the tolerance, and for a rival
    0 or, where that is larger, the nearer end of the range of no difference.
    """
    border = question.sign * BORDER[against] * question.tolerance
    p_value = difference.p_value(border)
    if against != "rival" or p_value is None or abs(difference.estimate) >= question.tolerance:
        return p_value
    ends = (difference.p_value(sign * question.tolerance) or 0.0 for sign in (-1, 1))
    return min(p_value, max(ends))


def turned(interval: Interval, question: Question) -> tuple[float, float] | None:
    """The interval's ends turned so that low is good; None where it has no ends."""
    if interval.low is None or interval.high is None:
        return None
    if question.sign > 0:
        return interval.low, interval.high
    return -interval.high, -interval.low


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two finalists and what their runs say of the difference, before any level is chosen."""

    against: Against
    candidate: Arm
    other: Arm
    difference: Difference | None
    evaluation: EvaluationError | None
    pairing: Pairing | None = None


def comparisons_of(finalists: Finalists) -> tuple[Comparison, ...]:
    """Holds the candidate against attention and the rival, the pick against the shorter model."""
    named: tuple[tuple[Against, Arm | None, Arm | None], ...] = (
        ("reference", finalists.candidate, finalists.reference),
        ("shorter", finalists.pick, finalists.shorter),
        ("rival", finalists.candidate, finalists.rival),
    )
    return tuple(
        compare(against, candidate, other)
        for against, candidate, other in named
        if candidate is not None and other is not None and candidate.arch_id != other.arch_id
    )


def compare(against: Against, candidate: Arm, other: Arm) -> Comparison:
    """Takes the difference on the test split; none where one of the two has no run there."""
    if not (candidate.test and other.test):
        return Comparison(against, candidate, other, None, None)
    evaluation, pairing = evaluation_error_of(candidate, other), pairing_of(candidate, other)
    parts = () if evaluation is None else (Part(evaluation.variance, evaluation.df),)
    if pairing is not None and pairing.is_used:
        found = paired_difference(pairing.differences, *parts)
    else:
        found = difference(candidate.test_values, other.test_values, *parts)
    return Comparison(against, candidate, other, found, evaluation, pairing)


def last_word_p(against: Against, difference: Difference, question: Question) -> float | None:
    """p-value of the last word that a contrast can come to; 1 where the estimate is between.

    After `better` or `keep attention` nothing more can be said of a contrast; after `may be cheap`
    it may still turn out better.
    """
    borders = (0.0, BORDER[against] * question.tolerance)
    turned_estimate = question.sign * difference.estimate
    if min(borders) < turned_estimate < max(borders):
        return None if not difference.parts else 1.0
    nearest = min(borders, key=lambda border: abs(border - turned_estimate))
    return difference.p_value(question.sign * nearest)


def contrasts_of(finalists: Finalists, question: Question, family: Family) -> tuple[Contrast, ...]:
    """Compares the finalists; the verdicts hold together at the family's level for this look."""
    return judged(comparisons_of(finalists), question, family)


def judged(
    compared: Sequence[Comparison], question: Question, family: Family
) -> tuple[Contrast, ...]:
    """Gives comparisons the verdicts that hold together at the family's level for this look."""
    last = [
        last_word_p(item.against, item.difference, question) if item.difference else None
        for item in compared
    ]
    levels = holm(last, family)
    return tuple(_contrast(*pair, question) for pair in zip(compared, levels, strict=True))


def _contrast(compared: Comparison, level: float, question: Question) -> Contrast:
    against, candidate, other = compared.against, compared.candidate, compared.other
    interval = compared.difference.interval(level) if compared.difference else None
    p_value = undecided_p(against, compared.difference, question) if compared.difference else None
    ends = turned(interval, question) if interval else None
    word: str = UNDECIDED
    beats: Beats = UNDECIDED
    if ends is not None:
        word = WORDS[against](*ends, question.tolerance)
        beats = _beats(*ends, question.tolerance)
    verdict = Verdict(word)
    if word == UNDECIDED:
        verdict = _undecided(compared, interval, question)
    return Contrast(
        against=against,
        candidate=candidate.code,
        candidate_id=candidate.arch_id,
        other=other.code,
        other_id=other.arch_id,
        interval=interval,
        n_candidate=len(candidate.test),
        n_other=len(other.test),
        beats=beats,
        verdict=verdict,
        p_value=None if p_value is None else adjusted(p_value, level),
        evaluation=compared.evaluation,
        pairing=compared.pairing,
    )


def _beats(low: float, high: float, tolerance: float) -> Beats:
    if high < 0:
        return "yes"
    return "no" if low > -tolerance else UNDECIDED


def _undecided(compared: Comparison, interval: Interval | None, question: Question) -> Verdict:
    """Says how many more runs would decide, by the arms' own SDs where they have some.

    The margin is the tolerance, or the distance of the estimate from the border between two
    verdicts where that is larger: a difference of many tolerances needs few runs.
    """
    if interval is not None and interval.reason == IDENTICAL:
        return Verdict(UNDECIDED, reason="repeats are identical: does the objective use its seed?")
    arms = (compared.candidate, compared.other)
    done = [len(arm.test) for arm in arms]
    sds = [arm.test_sd for arm in arms]
    known = [spread for spread in sds if spread is not None]
    per_arm = FEWEST_TO_DECIDE
    if known and interval is not None:
        left, right = (spread if spread is not None else max(known) for spread in sds)
        border = BORDER[compared.against] * question.tolerance
        if compared.pairing is not None and compared.pairing.is_used:
            left, right = compared.pairing.sd, 0.0
        margin = max(question.tolerance, abs(question.sign * interval.estimate - border))
        needed = partial(runs_needed, left, right, margin, interval.level)
        found = needed(compared.evaluation.sd if compared.evaluation else 0.0)
        if found is None:
            return Verdict(UNDECIDED, reason=_why_no_number(compared.evaluation, needed))
        per_arm = found
    per_arm = max(per_arm, min(done) + 1)
    more = sum(max(0, per_arm - n) for n in done)
    seconds = middle(row.seconds for arm in arms for row in arm.rows)
    return Verdict(UNDECIDED, per_arm, more, None if seconds is None else more * seconds)


def _why_no_number(
    evaluation: EvaluationError | None, needed: Callable[[float], int | None]
) -> str:
    """Says why no number of runs is asked for, as surely as the evaluation error is known."""
    if needed(0.0) is None:
        return MOST_RUNS
    if evaluation is None or needed(evaluation.least_sd) is not None:
        return MAY_NOT_HELP
    return NO_NUMBER


def hybrid_beats_all(
    finalists: Finalists, contrasts: Sequence[Contrast], question: Question
) -> Beats:
    """Whether a hybrid beats both pure stacks and the shorter models.

    ``yes`` needs all three contrasts of a hybrid pick; one ``no`` is enough for ``no``; a contrast
    that was not tested leaves it ``undecided``. Where the pick is a pure stack, the hybrid at
    stake is the rival, and the answer is ``no`` where the pick is better than it or no different.
    """
    pick = finalists.pick
    if pick is None:
        return UNDECIDED
    if pick.is_uniform:
        return _pure_pick_says(contrasts, pick, question)
    found = {contrast.against: contrast.beats for contrast in contrasts}
    if "no" in found.values():
        return "no"
    everything = len(found) == len(WORDS) and set(found.values()) == {"yes"}
    return "yes" if everything else UNDECIDED


def _pure_pick_says(contrasts: Sequence[Contrast], pick: Arm, question: Question) -> Beats:
    for contrast in contrasts:
        ends = turned(contrast.interval, question) if contrast.interval else None
        if ends is None:
            continue
        low, high = ends
        if contrast.candidate_id == pick.arch_id and contrast.against == "rival":
            hybrid_may_lead_by = high
        elif contrast.other_id == pick.arch_id:
            hybrid_may_lead_by = -low
        else:
            continue
        if hybrid_may_lead_by < question.tolerance:
            return "no"
    return UNDECIDED


def verdict_rows(contrasts: Sequence[Contrast], question: Question) -> tuple[VerdictRow, ...]:
    """The rows of the table ``verdicts``."""
    return tuple(
        VerdictRow(
            contrast=f"{contrast.candidate} - {contrast.other} ({contrast.against})",
            estimate=contrast.interval.estimate if contrast.interval else None,
            low=contrast.interval.low if contrast.interval else None,
            high=contrast.interval.high if contrast.interval else None,
            unit=question.unit,
            n=contrast.n_candidate + contrast.n_other,
            verdict=contrast.verdict.text,
            p_value=contrast.p_value,
        )
        for contrast in contrasts
    )
