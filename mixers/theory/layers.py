"""The three kinds of layer of the proof, with exact weights in units of delta."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Number = int | Fraction
Tokens = list[list[Number]]
"""One sequence, tokens as rows (n, d): the paper's X transposed."""


def dot(weights: Sequence[Number], token: Sequence[Number]) -> Number:
    """Return the product of a row of weights and a token."""
    return sum((w * x for w, x in zip(weights, token, strict=True)), start=0)


@dataclass(frozen=True)
class TokenLayer:
    """A feed-forward layer of width 1: z + out phi(row^T z + bias), phi piecewise linear.

    Attributes:
        row: d weights before the activation.
        bias: Added to their product.
        breakpoints: Where the next piece begins.
        slopes: Of each piece.
        intercepts: Of each piece, in units.
        out: d weights after the activation.
    """

    row: tuple[int, ...]
    bias: Number
    breakpoints: tuple[Number, ...]
    slopes: tuple[int, ...]
    intercepts: tuple[Number, ...]
    out: tuple[Number, ...]

    def __call__(self, tokens: Tokens) -> Tokens:
        """Return the tokens after the layer."""
        return [self.token(token) for token in tokens]

    def token(self, token: list[Number]) -> list[Number]:
        """Return one token after the layer."""
        t = dot(self.row, token) + self.bias
        piece = sum(t >= start for start in self.breakpoints)
        value = self.slopes[piece] * t + self.intercepts[piece]
        return [x + w * value for x, w in zip(token, self.out, strict=True)] if value else token


@dataclass(frozen=True)
class ShiftLayer:
    """The selective shift x + scale e_1 Psi(x; level - 1/2, level + 1/2) (appendix B.5)."""

    u: tuple[int, ...]
    level: int
    scale: int

    def __call__(self, tokens: Tokens) -> Tokens:
        """Return the tokens after the layer; ids are integers and never on a threshold."""
        scores = [dot(self.u, token) for token in tokens]
        amount = self.scale * (max(scores) - min(scores))
        return [
            [token[0] + amount, *token[1:]] if score == self.level else token
            for token, score in zip(tokens, scores, strict=True)
        ]


@dataclass(frozen=True)
class SignLayer:
    """The global layer x + scale e_1 psi(x; 0): the maximum above 0, the minimum below."""

    u: tuple[int, ...]
    scale: int

    def __call__(self, tokens: Tokens) -> Tokens:
        """Return the tokens after the layer; at score 0 all keys tie and the mean is added."""
        scores = [dot(self.u, token) for token in tokens]
        high, low, mean = max(scores), min(scores), Fraction(sum(scores), 1) / len(scores)
        return [
            [token[0] + self.scale * (high if s > 0 else low if s < 0 else whole(mean)), *token[1:]]
            for token, s in zip(tokens, scores, strict=True)
        ]


def whole(number: Fraction) -> Number:
    """Return an integer where the fraction is one."""
    return number.numerator if number.denominator == 1 else number
