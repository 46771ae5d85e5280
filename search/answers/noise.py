"""How much the same architecture moves when only the seed changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from mixers.notation import kind_of
from search.answers.arms import Arm, middle
from search.answers.intervals import IDENTICAL, TOO_FEW
from search.answers.question import Question
from search.answers.variance import pooled

LEVEL = 0.95
DIFFERENT = "the architectures' repeat SDs differ"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Repeat SD of one architecture on the test split; ``sd`` is None where not measurable."""

    arch_id: str
    code: str
    n: int
    mean: float
    sd: float | None


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise floor and what it is compared with.

    Attributes:
        repeats: one entry per confirmed architecture.
        sd: pooled repeat SD, sqrt(sum df s^2 / sum df); None where not measurable, never 0, and
            where the architectures' own differ.
        low: lower end of its 95 % chi-square interval.
        high: upper end of its 95 % chi-square interval.
        df: degrees of freedom of the pool.
        reason: why ``sd`` is None.
        uniform_n: number of uniform architectures of full depth, the reference once.
        uniform_range: worst minus best of them on the selection split.
        ratio: ``uniform_range / sd``.
        equal_p: Bartlett's p-value of equal SDs; None with fewer than two that are measured.
    """

    repeats: tuple[Repeat, ...]
    sd: float | None
    low: float | None
    high: float | None
    df: int
    reason: str
    uniform_n: int
    uniform_range: float | None
    ratio: float | None
    equal_p: float | None = None

    @property
    def typical_sd(self) -> float | None:
        """Median of the architectures' repeat SDs; None where none is measured."""
        return middle(repeat.sd for repeat in self.repeats)


def noise_of(arms: Sequence[Arm], question: Question) -> Noise:
    """Measures the repeat SD on the confirmation runs and the uniform stacks' spread beside it."""
    confirmed = [arm for arm in arms if arm.test]
    repeats = tuple(
        Repeat(arm.arch_id, arm.code, len(arm.test), arm.test_mean or 0.0, arm.test_sd)
        for arm in confirmed
    )
    pool = pooled([arm.test_values for arm in confirmed])
    sd, df = pool.sd, pool.df
    reason = ""
    if sd is None:
        reason = TOO_FEW if not df else IDENTICAL if pool.agrees else DIFFERENT
    low = high = None
    if sd is not None:
        tail = (1 - LEVEL) / 2
        low = sd * math.sqrt(df / float(stats.chi2.ppf(1 - tail, df)))
        high = sd * math.sqrt(df / float(stats.chi2.ppf(tail, df)))
    reference_kind = kind_of(question.reference)
    uniform = [
        mean
        for arm in arms
        if arm.n_layers == question.n_layers
        and arm.is_uniform
        and (arm.mixers[0] == question.reference or arm.kinds != {reference_kind})
        and (mean := arm.selection_mean) is not None
    ]
    spread = max(uniform) - min(uniform) if len(uniform) >= 2 else None
    ratio = spread / sd if spread is not None and sd is not None else None
    return Noise(repeats, sd, low, high, df, reason, len(uniform), spread, ratio, pool.p_value)
