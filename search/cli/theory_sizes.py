"""The sizes that the commands of the theorems take."""

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mixers.theory.sizes import Sizes


def sizes_of(d: int, n: int, delta: str, theorem: str) -> "Sizes":
    """Read the sizes.

    Raises:
        InputError: delta is no fraction.
        TheoryError: The construction does not exist for these sizes.
    """
    from mixers.theory.sizes import Sizes
    from search.errors import InputError

    try:
        width = Fraction(delta)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"--delta {delta!r} is no fraction; write it as 1/4 or 0.25") from None
    return Sizes.of(d, n, width, 2 if theorem == "2" else 3)
