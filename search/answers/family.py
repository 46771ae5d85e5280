"""The family of tests of a study: declared before the first training, counted at every look.

*Confirmatory* are three contrasts, read on the test split with fresh seeds: the candidate against
all-attention, the pick against the shorter model, the candidate against the rival. A step-down
procedure after Holm (1979) keeps the chance of any false verdict among them below the look's share
of 5 %. *Exploratory* are the effects of single layers, layers x (choices - 1) of them, read
where the search looked; they have a level of their own and never share the verdicts'.

A larger budget adds runs to the same finalists, so each answer is a *look* at accumulating data.
Look k spends 5 % x 0.8 x 0.2^(k - 1): 4 % for the first, 0.8 % for the second, 5 % over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

ALPHA = 0.05
FIRST_SHARE = 0.8
LAYER_SHARE = 0.25
"""What the layers' effects may spend beside the contrasts, as a share of the look's alpha."""

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
    def layer_alpha(self) -> float:
        """Level of all effects of layers that are read in one way."""
        return self.alpha * LAYER_SHARE

    def chosen_from(self, n: int) -> Family:
        """The family in which each confirmatory contrast is the best of n."""
        return replace(self, confirmatory=n * self.confirmatory)

    @property
    def layer_level(self) -> float:
        """Confidence level of each layer's interval: Bonferroni over all layer contrasts."""
        return 1.0 - self.layer_alpha / max(1, self.layer_contrasts)


def holm(p_values: Sequence[float | None], family: Family) -> tuple[float, ...]:
    """Returns the confidence level of each contrast's interval by Holm's procedure.

    A contrast has two borders, 0 and the tolerance, so `may be cheap` is said with `better` still
    open: it keeps its share of alpha. Only a contrast about which nothing more can be said passes
    its share on to the others: the k-th smallest p-value is held against alpha / (m - k + 1), and
    where it fails, that is the share of all that are left. This is a graphical procedure in the
    sense of Bretz et al. (2009), which holds the chance of any false word below alpha.

    Args:
        p_values: for each contrast, of its last word being false; None where nothing was tested.
            At most ``family.confirmatory``, in any order.
        family: the family, of m confirmatory contrasts.
    """
    order = sorted(range(len(p_values)), key=lambda i: _last(p_values[i]))
    levels = [0.0] * len(p_values)
    left = family.confirmatory
    for index in order:
        levels[index] = 1.0 - family.alpha / left
        if _last(p_values[index]) <= family.alpha / left and left > 1:
            left -= 1
    return tuple(levels)


def adjusted(p_value: float, level: float) -> float:
    """A contrast's p-value for family and look: at most 0.05 where its interval decides."""
    return min(1.0, p_value * ALPHA / (1.0 - level))


def _last(p_value: float | None) -> float:
    return 2.0 if p_value is None else p_value
