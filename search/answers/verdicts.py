"""Verdicts: what an interval allows to be said, and how many runs would decide.

The question is non-inferiority. With d = (cheap - attention) in the objective's unit, turned so
that low is good, and the study's tolerance:

==================  ===========================================
``better``          the interval of d lies below 0
``may be cheap``    its upper end lies below the tolerance
``keep attention``  its lower end lies above the tolerance
``undecided``       anything else, and fewer than two runs an arm
==================  ===========================================

A shorter model is asked the same question about its depth, d = (shorter - pick): ``shorter is
better``, ``may be shorter``, ``keep depth``, ``undecided``. A rival of the same depth is a plain
comparison, d = (pick - rival): ``better``, ``worse``, ``no difference`` (the interval lies within
the tolerance on both sides), ``undecided``. Estimates are always printed as pick minus other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from search.answers.arms import Arm, Finalists, middle
from search.answers.intervals import IDENTICAL, Interval, runs_needed, welch
from search.answers.question import Question
from search.budget import duration_words
from search.rows import VerdictRow

FAMILY_LEVEL = 0.95
WORTH_SAYING_S = 1.0
UNDECIDED: Final = "undecided"

Against = Literal["reference", "shorter", "rival"]
Beats = Literal["yes", "no", "undecided"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word of the vocabulary and, where undecided, what would decide.

    ``runs_per_arm`` is how many runs each arm needs in all, ``more_runs`` what is missing of them
    in both arms together. Both are None where no number of runs would help (identical repeats) and
    where the verdict is made.
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
    """Candidate minus other on the test split: estimate, Welch interval, verdict.

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


def turned(interval: Interval, question: Question) -> tuple[float, float] | None:
    """The interval's ends turned so that low is good; None where it has no ends."""
    if interval.low is None or interval.high is None:
        return None
    if question.sign > 0:
        return interval.low, interval.high
    return -interval.high, -interval.low


def contrasts_of(finalists: Finalists, question: Question) -> tuple[Contrast, ...]:
    """Holds the candidate against attention and the rival, the pick against the shorter model.

    The intervals hold together: each has the level 1 - 0.05 / (number of contrasts) (Bonferroni).
    """
    named: tuple[tuple[Against, Arm | None, Arm | None], ...] = (
        ("reference", finalists.candidate, finalists.reference),
        ("shorter", finalists.pick, finalists.shorter),
        ("rival", finalists.candidate, finalists.rival),
    )
    pairs = [
        (against, candidate, other)
        for against, candidate, other in named
        if candidate is not None and other is not None and candidate.arch_id != other.arch_id
    ]
    level = 1 - (1 - FAMILY_LEVEL) / max(1, len(pairs))
    return tuple(
        _contrast(against, candidate, other, question, level) for against, candidate, other in pairs
    )


def _contrast(
    against: Against, candidate: Arm, other: Arm, question: Question, level: float
) -> Contrast:
    interval = None
    if candidate.test and other.test:
        interval = welch(candidate.test_values, other.test_values, level)
    ends = turned(interval, question) if interval else None
    word: str = UNDECIDED
    beats: Beats = UNDECIDED
    if ends is not None:
        word = WORDS[against](*ends, question.tolerance)
        beats = _beats(*ends, question.tolerance)
    verdict = Verdict(word)
    if word == UNDECIDED:
        verdict = _undecided(against, candidate, other, interval, question)
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
    )


def _beats(low: float, high: float, tolerance: float) -> Beats:
    if high < 0:
        return "yes"
    return "no" if low > -tolerance else UNDECIDED


def _undecided(
    against: Against, candidate: Arm, other: Arm, interval: Interval | None, question: Question
) -> Verdict:
    """Says how many more runs would decide, by the arms' own SDs where they have some.

    The margin is the tolerance, or the distance of the estimate from the border between two
    verdicts where that is larger: a difference of many tolerances needs few runs.
    """
    if interval is not None and interval.reason == IDENTICAL:
        return Verdict(UNDECIDED, reason="repeats are identical: does the objective use its seed?")
    done = (len(candidate.test), len(other.test))
    sds = [arm.test_sd for arm in (candidate, other)]
    known = [spread for spread in sds if spread is not None]
    per_arm = 2
    if known and interval is not None:
        left, right = (spread if spread is not None else max(known) for spread in sds)
        distance = abs(question.sign * interval.estimate - BORDER[against] * question.tolerance)
        margin = max(question.tolerance, distance)
        per_arm = runs_needed(left, right, margin, interval.level)
    per_arm = max(per_arm, min(done) + 1)
    more = sum(max(0, per_arm - n) for n in done)
    seconds = middle(row.seconds for arm in (candidate, other) for row in arm.rows)
    return Verdict(UNDECIDED, per_arm, more, None if seconds is None else more * seconds)


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
        )
        for contrast in contrasts
    )
