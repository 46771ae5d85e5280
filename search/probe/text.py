"""A probe's readings as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

COLUMNS = ("p_sep", "borderline", "d_ctx", "gap_min", "gap_p01", "gap_median")
WHOLE = ("contextual.d_ctx", "contextual.s_ctx", "contextual.d_all", "far.p_sep")


def table(readings: Mapping[str, float | None], strata: Sequence[str], *, heading: str) -> str:
    """The last block's readings: a line per stratum, then those of the network as a whole."""
    mode = "positional" if readings["positional"] else "equivariant"
    lines = [
        f"last block, {mode}, {heading}",
        f"{'stratum':<16}" + "".join(f"{column:>12}" for column in COLUMNS),
    ]
    for stratum in strata:
        values = (readings[f"{stratum}.{column}"] for column in COLUMNS)
        cells = ("-" if value is None else f"{value:.3g}" for value in values)
        lines.append(f"{stratum:<16}" + "".join(f"{cell:>12}" for cell in cells))
    lines += [
        f"{name:<16}{readings[name]:>12.3g}" for name in WHOLE if readings.get(name) is not None
    ]
    return "\n".join(lines)


def layer_table(readings: Mapping[str, float | None], strata: Sequence[str]) -> str:
    """Separated share at every probe point, first layer first; empty where only one was read."""
    first = f".{strata[0]}.p_sep"
    inner = [
        name.removesuffix(first)
        for name in readings
        if name.startswith("layer_") and name.endswith(first)
    ]
    if not inner:
        return ""
    lines = [f"{'p_sep after':<16}" + "".join(f"{stratum:>16}" for stratum in strata)]
    for point in [*inner, ""]:
        values = (readings[f"{point}.{stratum}.p_sep".removeprefix(".")] for stratum in strata)
        cells = ("-" if value is None else f"{value:.3g}" for value in values)
        lines.append(f"{point or 'last block':<16}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def dtype_name(dtype: torch.dtype) -> str:
    """``float64`` for ``torch.float64``."""
    return str(dtype).removeprefix("torch.")
