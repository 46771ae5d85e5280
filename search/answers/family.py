"""The family of tests of a study: declared before the first training, counted at every look.

*Confirmatory* are three contrasts, read on the test split with fresh seeds: the candidate against
all-attention, the pick against the shorter model, the candidate against the rival. Holm's
step-down procedure (Holm 1979) keeps the chance of any false verdict among them below the look's
share of 5 %. *Exploratory* are the effects of single layers, layers x (choices - 1) of them, read
where the search looked; they have a level of their own and never share the verdicts'.

A larger budget adds runs to the same finalists, so each answer is a *look* at accumulating data.
Look k spends 5 % x 0.8 x 0.2^(k - 1): 4 % for the first, 0.8 % for the second, 5 % over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALPHA = 0.05
FIRST_SHARE = 0.8
CONFIRMATORY = 3
FIRST_LEVEL = 1.0 - ALPHA * FIRST_SHARE / CONFIRMATORY
"""Level of the first contrast's interval at the first look, before any other is decided."""


def alpha_of_look(look: int) -> float:
    """What the ``look``-th answer of a study (1, 2, ...) may spend of the 5 %.

    Raises:
        ValueError: The look is below 1.
    """
    if look < 1:
        raise ValueError(f"look {look}: the first is 1")
    return float(ALPHA * FIRST_SHARE * (1.0 - FIRST_SHARE) ** (look - 1))


@dataclass(frozen=True, slots=True)
class Family:
    """What a study tests.

    Attributes:
        layer_contrasts: exploratory contrasts, layers x (choices - 1), with pairs or without.
        look: which answer of the study this is.
        confirmatory: contrasts on the test split, whether or not they have runs.
        provisional: trials are still under way, so the answer may change and is no look yet.
    """

    layer_contrasts: int
    look: int = 1
    confirmatory: int = CONFIRMATORY
    provisional: bool = False

    @property
    def alpha(self) -> float:
        """Level of the confirmatory contrasts together, at this look."""
        return alpha_of_look(self.look)

    @property
    def layer_level(self) -> float:
        """Confidence level of each layer's interval: Bonferroni over all layer contrasts."""
        return 1.0 - self.alpha / max(1, self.layer_contrasts)


@dataclass(frozen=True, slots=True)
class Step:
    """What Holm's procedure makes of one contrast.

    Attributes:
        level: confidence level at which its interval is held against the borders.
        p_value: adjusted for the family and the look; decided where it is at most 0.05.
        is_decided: whether the procedure got to it and decided it.
    """

    level: float
    p_value: float | None
    is_decided: bool


def holm(p_values: Sequence[float | None], family: Family) -> tuple[Step, ...]:
    """Runs Holm's procedure; contrasts without a p-value count as undecided.

    The k-th smallest p-value is held against alpha / (m - k + 1); the first that fails, and all
    after it, stay undecided at that level.

    Args:
        p_values: at most ``family.confirmatory``, in any order; None where nothing was tested.
        family: the family, of ``m`` confirmatory contrasts.
    """
    order = sorted(range(len(p_values)), key=lambda i: _last(p_values[i]))
    steps: list[Step | None] = [None] * len(p_values)
    running, share, going = 0.0, 0.0, True
    for rank, index in enumerate(order):
        p_value, left = p_values[index], family.confirmatory - rank
        if going:
            share = family.alpha / left
        going = going and p_value is not None and p_value <= share
        adjusted = None
        if p_value is not None:
            running = max(running, min(1.0, left * p_value * ALPHA / family.alpha))
            adjusted = running
        steps[index] = Step(1.0 - share, adjusted, going)
    return tuple(step for step in steps if step is not None)


def _last(p_value: float | None) -> float:
    return 2.0 if p_value is None else p_value
