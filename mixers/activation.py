"""Activations of the feed-forward layer, the paper's piecewise-linear class among them."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from mixers.config import FrozenModel, Items


class PiecewiseLinear(FrozenModel):
    """A member of the paper's class Phi: at most three linear pieces, at least one constant.

    Piece i is `slopes[i] * t + intercepts[i]` on `[breakpoints[i-1], breakpoints[i])`; jumps are
    allowed (Yun et al. 2020, section 4, step 2). ReLU is breakpoints (0,), slopes (0, 1),
    intercepts (0, 0).
    """

    kind: Literal["piecewise_linear"] = "piecewise_linear"
    breakpoints: Annotated[Items[float], Field(max_length=2)]
    slopes: Annotated[Items[float], Field(min_length=1, max_length=3)]
    intercepts: Annotated[Items[float], Field(min_length=1, max_length=3)]

    @model_validator(mode="after")
    def is_in_the_class(self) -> Self:
        """Check the shape of the pieces."""
        pieces = len(self.breakpoints) + 1
        if len(self.slopes) != pieces or len(self.intercepts) != pieces:
            raise ValueError(
                f"{len(self.breakpoints)} breakpoints make {pieces} pieces, but there are "
                f"{len(self.slopes)} slopes and {len(self.intercepts)} intercepts"
            )
        if list(self.breakpoints) != sorted(set(self.breakpoints)):
            raise ValueError(f"breakpoints must ascend, got {self.breakpoints}")
        if 0.0 not in self.slopes:
            raise ValueError("at least one piece must be constant (slope 0)")
        return self


def branch(value: Any) -> str:
    """Return which member of `Activation` is meant, so that errors speak of that one only."""
    return "name" if isinstance(value, str) else "piecewise_linear"


Activation = Annotated[
    Annotated[Literal["gelu", "relu"], Tag("name")]
    | Annotated[PiecewiseLinear, Tag("piecewise_linear")],
    Discriminator(branch),
]
"""A name, or a member of the piecewise-linear class."""
