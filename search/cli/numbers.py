"""Numbers as people read them, with their units."""

import math

ABSENT = "-"


def decimals(value: float | None, digits: int = 4) -> str:
    """A plain number; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """A share of one as a percentage."""
    return ABSENT if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def scaled(value: float | None, unit: str = "") -> str:
    """A large count with a decimal prefix: 1.2 M, 3.4 GFLOP."""
    if value is None or not math.isfinite(value):
        return ABSENT
    size, prefix = float(value), ""
    for step in ("k", "M", "G", "T", "P", "E"):
        if abs(size) < 999.5:
            break
        size, prefix = size / 1000, step
    digits = 0 if prefix == "" and size == round(size) else 1 if abs(size) >= 10 else 2
    return f"{size:.{digits}f} {prefix}{unit}".rstrip()


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


def seconds(value: float | None) -> str:
    """A time span in the unit that fits: 340 us, 12.3 ms, 4.56 s, 3 min 20 s, 1 h 05 min."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value < 0.0009995:
        return f"{1e6 * value:.0f} us"
    if value < 0.9995:
        return f"{1000 * value:.3g} ms"
    if value < 59.95:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
