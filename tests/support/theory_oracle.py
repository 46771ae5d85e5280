"""The theorems' maps once more, in the paper's orientation and in exact numbers.

X is d x n (a list of d rows), tokens are columns. Everything is in units of delta: K = 1/delta,
B = K^d, ids are integers, thresholds halves. Attention is the n x n hardmax of the definition, with
ties shared; nothing here knows a closed form or leaves a layer out.
"""

from collections.abc import Sequence
from fractions import Fraction

Number = int | Fraction
Matrix = list[list[Number]]


def ids(X: Matrix, K: int) -> list[Number]:
    """u^T X with u = (1, K, ..., K^(d-1))."""
    return [sum(K**i * row[j] for i, row in enumerate(X)) for j in range(len(X[0]))]


def psi(X: Matrix, K: int, threshold: Number) -> list[Number]:
    """First row of e1 u^T X hardmax[(u^T X)^T (u^T X - b 1^T)], appendix B.5."""
    s = ids(X, K)
    out = []
    for query in s:
        column = [key * (query - threshold) for key in s]
        best = max(column)
        chosen = [key for key, score in zip(s, column, strict=True) if score == best]
        mean = Fraction(sum(chosen), len(chosen))
        out.append(int(mean) if mean.denominator == 1 else mean)
    return out


def shift(X: Matrix, K: int, level: int, scale: int) -> Matrix:
    """X + scale Psi(X; level - 1/2, level + 1/2)."""
    half = Fraction(1, 2)
    moved = zip(X[0], psi(X, K, level - half), psi(X, K, level + half), strict=True)
    return [[x + scale * (a - b) for x, a, b in moved], *X[1:]]


def context(X: Matrix, K: int, levels: Sequence[int], scale: int, last: int) -> Matrix:
    """All selective shifts in the order of `levels`, then X + last psi(X; 0)."""
    for level in levels:
        X = shift(X, K, level, scale)
    return [[x + last * a for x, a in zip(X[0], psi(X, K, 0), strict=True)], *X[1:]]


def context_theorem_2(L: Matrix, K: int) -> Matrix:
    """Lemma 6."""
    d, n = len(L), len(L[0])
    B = K**d
    return context(L, K, range(B), B, B ** (n + 1))


def context_theorem_3(L: Matrix, K: int) -> Matrix:
    """Appendix C.2; L already holds the positions (column j in [j, j + 1), counted from 0)."""
    d, n = len(L), len(L[0])
    B = K**d
    start = sum(K ** (i + 1) for i in range(d))
    levels = [j * start + step for j in range(n) for step in range(B)]
    return context(L, K, levels, B, n * K * B ** (n + 1))


def quantize_2(X: Matrix, K: int) -> Matrix:
    """Lemma 5: floor inside [0, 1), else -delta^(-nd) (in units: times K)."""
    d, n = len(X), len(X[0])
    outside = -K * K ** (n * d)
    return [[x // 1 if 0 <= x < K else outside for x in row] for row in X]


def quantize_3(X: Matrix, K: int) -> Matrix:
    """Appendix C.1 for X in [0, 1): floor, after the positions are added."""
    return [[(x + K * j) // 1 for j, x in enumerate(row)] for row in X]
