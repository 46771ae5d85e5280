"""Numbers as people read them, with their units.

See `search.wording` for counts and times.
"""

import math

ABSENT = "-"


def decimals(value: float | None, digits: int = 4) -> str:
    """A plain number; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{value:.{digits}f}"


def size_in_bytes(value: float | None) -> str:
    """Memory or disk: 512 B, 1.5 GiB."""
    if value is None:
        return ABSENT
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
