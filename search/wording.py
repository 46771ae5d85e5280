"""Numbers of an answer as people read them, with the digits that the tolerance calls for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.spec.budget import duration_words

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.intervals import Interval
    from search.answers.question import Question

ABSENT = "-"
MAX_DIGITS = 9
OTHERS = {"reference": "all-attention", "shorter": "shorter model", "rival": "rival"}
PREFIXES = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"))


def digits_of(question: Question) -> int:
    """Decimals that show a tenth of the tolerance."""
    return min(MAX_DIGITS, max(0, 1 - math.floor(math.log10(question.tolerance))))


def value_text(value: float | None, question: Question) -> str:
    """A metric's value."""
    return ABSENT if value is None else f"{value:.{digits_of(question)}f}"


def signed(value: float, question: Question) -> str:
    """A difference with its sign."""
    return f"{value:+.{digits_of(question)}f}"


def difference_text(interval: Interval | None, question: Question) -> str:
    """A signed difference with its interval; never one whose ends look equal."""
    if interval is None:
        return ABSENT
    if interval.low is None or interval.high is None:
        return signed(interval.estimate, question)
    width = interval.high - interval.low
    digits = max(digits_of(question), 1 - math.floor(math.log10(width)))
    return f"{interval.estimate:+.{digits}f} {ends_text(interval, digits)}"


def ends_text(interval: Interval, digits: int) -> str:
    """The ends of an interval in brackets."""
    return f"[{interval.low:+.{digits}f}, {interval.high:+.{digits}f}]"


def in_unit(question: Question) -> str:
    """The unit in parentheses, nothing where it has none."""
    return f" ({question.unit})" if question.unit else ""


def two_digits(value: float | None) -> str:
    """A number with two significant digits, without an exponent where it is large."""
    if value is None:
        return ABSENT
    rounded = f"{value:.2g}"
    return f"{float(rounded):.0f}" if abs(value) >= 99.5 else rounded


def scaled(value: float | None) -> str:
    """A count with a decimal prefix: ``1.2 M``; a dash for none or zero (not counted)."""
    if not value:
        return ABSENT
    for step, prefix in PREFIXES:
        if value >= step:
            return f"{value / step:.3g}{prefix}"
    return f"{value:.3g}"


def time_text(seconds: float | None) -> str:
    """A time span in the unit that fits."""
    if seconds is None:
        return ABSENT
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} us"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else duration_words(seconds)


def plural(n: int, noun: str) -> str:
    """``1 pair``, ``2 pairs``."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def with_unit(text: str, question: Question) -> str:
    """A number, or a difference with its interval, and its unit."""
    return f"{text} {question.unit}".rstrip()


def sure_text(alpha: float) -> str:
    """How sure 1 - alpha is, as "99.968 %": never rounded up to certainty."""
    return f"{100 - float(f'{100 * alpha:.2g}'):.10g} %"


def joined(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def candidate_words(answer: Answer) -> str:
    """What is held against all-attention: the pick, or what stands in for it."""
    if answer.pick != answer.reference:
        return "pick"
    return "best other" if answer.question.is_listed else "best hybrid"


def role_words(role: str) -> str:
    """A baseline's role as people read it: ``cheap_short`` -> ``cheap short``.

    What follows a colon is a mixer as people type it: ``uniform:hardmax_shift`` -> ``uniform
    hardmax_shift``.
    """
    name, _, notation = role.partition(":")
    return f"{name.replace('_', ' ')} {notation}".rstrip()


def duration_or_nothing(seconds: float | None) -> str:
    """``, about 5 min``; nothing where the time is unknown or too short to speak of."""
    return "" if seconds is None or seconds < 1 else f", about {duration_words(seconds)}"


def measure_name(name: str) -> str:
    """A metric's or a cost's name as people read it."""
    return "FLOPs" if name == "flops" else name.replace("_", " ")
