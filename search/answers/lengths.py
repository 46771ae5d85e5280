"""Does the answer hold at longer training, or at another width? From the rows of derived studies.

Each scale is trained with a schedule of its own, and the same seeds. The lead is (all-attention -
candidate) on the test split, turned so that a positive lead is ahead. Whether it grows or closes is
judged by the interval of its change from the study's own length to the longest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mixers.notation import kind_of
from search.answers.arms import Arm, Finalists, arms_of
from search.answers.family import Family
from search.answers.intervals import (
    TOO_FEW,
    Difference,
    Interval,
    rank_correlation,
)
from search.answers.question import Question
from search.answers.ranks import LEVEL, lead_word
from search.answers.verdicts import UNDECIDED, Contrast, compare, contrasts_of
from search.rows import TrialRow
from search.spec.space import Labels

ENOUGH_TO_RANK = 8
HALF = 0.5
LENGTH = "steps-"
WIDTH = "d_model-"

Outcome = Literal["kept", "lost", "undecided"]

IMPLIES = {"better": "may be cheap", "shorter is better": "may be shorter"}
"""Verdicts that say another one and more."""


@dataclass(frozen=True)
class Derived:
    """A derived study as the answer of its base reads it.

    Attributes:
        purpose: what it was made for: ``steps-x4``, ``d_model-128``.
        question: its facts.
        d_model: its width.
        rows: its trials.
        labels_at: the notation that an architecture's layers have at its sizes.
    """

    purpose: str
    question: Question
    d_model: int
    rows: Sequence[TrialRow]
    labels_at: Callable[[Labels], Labels]


@dataclass(frozen=True, slots=True)
class Measured:
    """Candidate, all-attention and shorter model at one scale.

    Attributes:
        purpose: the scale's name.
        steps: training steps.
        d_model: width.
        n_candidate: runs of the candidate on test.
        n_reference: runs of all-attention on test.
        lead: of the candidate over all-attention; None where one of the two has no run.
        contrasts: the verdicts at this scale.
    """

    purpose: str
    steps: int
    d_model: int
    n_candidate: int
    n_reference: int
    lead: Interval | None
    contrasts: tuple[Contrast, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Spearman's correlation of the order at the study's own scale with that at another.

    ``correlation`` is None below four architectures in common; fewer than eight say little.
    """

    purpose: str
    n: int
    correlation: Interval | None

    @property
    def is_enough(self) -> bool:
        """Whether there are architectures enough to speak of an order."""
        return self.n >= ENOUGH_TO_RANK


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a decided verdict of the study at another scale."""

    purpose: str
    against: str
    before: str
    after: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Lengths:
    """How the study's answer fares at other scales.

    Attributes:
        candidate: code of the candidate.
        reference: code of all-attention.
        measured: one entry a scale: the study's own, longer ones, other widths.
        last: purpose of the longest training, None where only widths were tried.
        change: lead at the longest minus lead at the study's own length.
        word: ``growing``, ``steady`` (the change lies within the tolerance), ``closing``,
            ``undecided``.
        left: lead at the longest / lead at the study's own length, where that is positive.
        orders: rank correlations, one a scale with eight or more architectures listed.
        kept: what became of the study's verdicts at each such scale.
    """

    candidate: str
    reference: str
    measured: tuple[Measured, ...]
    last: str | None
    change: Interval | None
    word: str
    left: float | None
    orders: tuple[Order, ...]
    kept: tuple[Kept, ...]


def lengths_of(
    roles: Mapping[str, Labels],
    verdicts: Sequence[Contrast],
    derived: Sequence[Derived],
    question: Question,
) -> Lengths | None:
    """Compares the scales; None without a derived study at the study's own scale and another.

    Args:
        roles: layers of pick, reference, shorter model and rival, as the base study has them.
        verdicts: the base study's, at the recipe that the derived studies have.
        derived: the derived studies, one a scale.
        question: the base study's facts.
    """
    named = with_reference(roles, question)
    scales = [
        _Scale(found, named) for found in derived if found.purpose.startswith((LENGTH, WIDTH))
    ]
    own = next((scale for scale in scales if scale.is_own(question)), None)
    others = [scale for scale in scales if scale is not own]
    if own is None or not others or own.candidate is None or own.reference is None:
        return None
    others.sort(key=lambda scale: (scale.found.purpose.startswith(WIDTH), scale.steps))
    longer = [scale for scale in others if scale.found.purpose.startswith(LENGTH)]
    last = longer[-1] if longer else None
    change = _change(own, last) if last else None
    judged = [scale for scale in others if scale is last or scale not in longer]
    return Lengths(
        candidate=own.candidate.code,
        reference=own.reference.code,
        measured=tuple(scale.measured for scale in (own, *others)),
        last=last.found.purpose if last else None,
        change=change,
        word=lead_word(change, question.tolerance) if change else UNDECIDED,
        left=_left(own, last) if last else None,
        orders=tuple(_order(own, scale) for scale in judged),
        kept=tuple(kept for scale in judged for kept in _kept(verdicts, scale)),
    )


def with_reference(roles: Mapping[str, Labels], question: Question) -> dict[str, Labels]:
    """Adds the reference where it is no finalist of its own: the pick is it, or it was not run."""
    pick = roles.get("pick", ())
    is_reference = {kind_of(label) for label in pick} == {kind_of(question.reference)}
    reference = pick if is_reference else (question.reference,) * question.n_layers
    return {"reference": reference, **roles}


class _Scale:
    """One derived study: its architectures and the finalists among them."""

    def __init__(self, found: Derived, roles: Mapping[str, Labels]) -> None:
        self.found = found
        self.steps = found.question.steps or 0
        arms = arms_of(found.rows, found.question)
        by_layers = {arm.mixers: arm for arm in arms}
        named: dict[str, Arm | None] = {
            role: by_layers.get(found.labels_at(labels)) for role, labels in roles.items()
        }
        self.finalists = Finalists(
            named.get("pick"), named.get("reference"), named.get("shorter"), named.get("rival")
        )
        self.candidate = self.finalists.candidate
        self.reference = self.finalists.reference
        self.by_layers = by_layers

    def is_own(self, question: Question) -> bool:
        """Whether this is the base study's own length and width."""
        return (self.steps, self.found.question.size) == (question.steps, question.size)

    def lead(self) -> Difference | None:
        """Of the candidate over all-attention, positive where it is ahead; None without runs."""
        if self.candidate is None or self.reference is None:
            return None
        found = compare("reference", self.candidate, self.reference).difference
        if found is None:
            return None
        return Difference(-self.found.question.sign * found.estimate, found.parts, found.reason)

    @property
    def measured(self) -> Measured:
        """The scale in numbers."""
        lead = self.lead()
        return Measured(
            purpose=self.found.purpose,
            steps=self.steps,
            d_model=self.found.d_model,
            n_candidate=len(self.candidate.test) if self.candidate else 0,
            n_reference=len(self.reference.test) if self.reference else 0,
            lead=lead.interval(LEVEL) if lead else None,
            contrasts=self.contrasts(),
        )

    def contrasts(self) -> tuple[Contrast, ...]:
        """The verdicts at this scale, with the family of any study."""
        return contrasts_of(self.finalists, self.found.question, Family(layer_contrasts=0))


def _change(own: _Scale, last: _Scale) -> Interval | None:
    before, after = own.lead(), last.lead()
    if before is None or after is None:
        return None
    parts = (*before.parts, *after.parts) if before.parts and after.parts else ()
    reason = before.reason or after.reason or ("" if parts else TOO_FEW)
    return Difference(after.estimate - before.estimate, parts, reason).interval(LEVEL)


def _left(own: _Scale, last: _Scale) -> float | None:
    before, after = own.lead(), last.lead()
    if before is None or after is None or before.estimate <= 0:
        return None
    return after.estimate / before.estimate


def _order(own: _Scale, other: _Scale) -> Order:
    pairs = []
    for layers, arm in own.by_layers.items():
        there = other.by_layers.get(other.found.labels_at(layers))
        if there is not None and arm.test_mean is not None and there.test_mean is not None:
            pairs.append((arm.test_mean, there.test_mean))
    correlation = rank_correlation([a for a, _ in pairs], [b for _, b in pairs])
    return Order(other.found.purpose, len(pairs), correlation)


def _kept(verdicts: Sequence[Contrast], scale: _Scale) -> list[Kept]:
    after = {contrast.against: contrast.verdict.word for contrast in scale.contrasts()}
    found = []
    # The first against each is the candidate's own; a listed study has one for every architecture.
    first: dict[str, Contrast] = {}
    for contrast in verdicts:
        first.setdefault(contrast.against, contrast)
    for contrast in first.values():
        before = contrast.verdict.word
        if before == UNDECIDED or contrast.against not in after:
            continue
        now = after[contrast.against]
        is_kept = before in (now, IMPLIES.get(now))
        outcome: Outcome = "kept" if is_kept else "undecided" if now == UNDECIDED else "lost"
        found.append(Kept(scale.found.purpose, contrast.against, before, now, outcome))
    return found
