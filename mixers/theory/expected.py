"""What the proof says, as integers in units of delta; shares no code with the construction.

Orientation of the paper: k = 1/delta, b = k^d, u = (1, k, ..., k^(d-1)), ids l_1 <= ... <= l_n of
the columns.
"""

from fractions import Fraction
from math import comb, factorial, prod


def layer_counts(d: int, n: int, k: int, theorem: int) -> dict[str, int]:
    """Return the layers of each part (Lemmas 5, 6 and 7; appendix C)."""
    b = k**d
    if theorem == 2:
        return {
            "quantizer": d * (k + 1),
            "shifts": b,
            "global": 1,
            "value": 1 + d + n * comb(b, n),
        }
    return {"quantizer": d * n * k, "shifts": n * b, "global": 1, "value": n * b**n}


def ends(d: int, n: int, k: int) -> tuple[int, int]:
    """Return t_l = delta^(-2nd+1) (delta^-d - 1) and t_r = delta^(-(2n+1)d+1) (delta^-d - 1)."""
    return int(k ** (2 * n * d) * (k**d - 1)), int(k ** ((2 * n + 1) * d) * (k**d - 1))


def top_bounds(d: int, n: int, k: int, theorem: int) -> tuple[int, int]:
    """Return the bounds of the largest id before the global layer (Lemma 10; C.2: upper only)."""
    b = k**d
    if theorem == 2:
        return int(b ** (n - 1) * (b - 1)), int(b**n * (b - 1) - (b - 1) ** 2)
    return 0, int(n * k * b ** (n + 1))


def smallest_gap(d: int, n: int, k: int) -> int:
    """Return the smallest distance of two ids of Category 1 that must differ."""
    b = k**d
    return int((b - 1) * ((n - 1) * b - 1))


def swept(ids: list[int], b: int) -> list[int]:
    """Return the ids before the global layer, in the order given (closed forms, corrected).

    Negative ids never move. The distinct others v_1 < ... < v_k become
    v~_1 = v_1 + b (v_k - m) and v~_j = v_j + b (v~_(j-1) - m_j), where m_j is the smallest id at
    that time: the overall minimum m where an id is negative, else v_j itself, for j = 1 that is m.
    """
    ladder = sorted({number for number in ids if number >= 0})
    negative = min(ids) if min(ids) < 0 else None
    moved: dict[int, int] = {}
    top = ladder[-1] if ladder else 0
    for v in ladder:
        low = v if negative is None else negative
        moved[v] = v + b * (top - low)
        top = moved[v]
    return [moved.get(number, number) for number in ids]


def global_shift(ids: list[int], factor: int) -> list[int]:
    """Return ids + factor * max for positive ids, + factor * min for negative ones; 0 stays.

    An id of 0 is left only where all are 0.
    """
    return [
        number + factor * (max(ids) if number > 0 else min(ids) if number < 0 else 0)
        for number in ids
    ]


def global_factor(d: int, n: int, k: int, theorem: int) -> int:
    """Return delta^(-(n+1)d), for Theorem 3 n delta^(-(n+1)d-1)."""
    return int(k ** ((n + 1) * d) if theorem == 2 else n * k ** ((n + 1) * d + 1))


def category_sizes(d: int, n: int, k: int, theorem: int) -> dict[int, int]:
    """Return how many grid points each of the categories 1 to 3 has (Theorem 3: all are 1)."""
    b = k**d
    if theorem == 3:
        return {1: b**n}
    distinct = factorial(n) * comb(b, n)
    return {1: distinct, 2: b**n - distinct, 3: (k + 1) ** (d * n) - b**n}


def duplicate_share(n: int, b: int) -> float:
    """Return the measure of the cubes in which two columns fall together: 1 - prod (1 - i/b)."""
    return float(1 - prod(1 - Fraction(i, b) for i in range(n)))
