"""The calibration in words: one line per study, and what holds over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scipy import stats

Row = Mapping[str, Any]

HEADER = (
    "world",
    "strategy",
    "trials",
    "false, %",
    "finalists",
    "layers",
    "95 % intervals cover, %",
    "of (intervals)",
    "made and right, %",
    "cheap - attention",
    "layer verdicts a study",
)


def percent(count: int, total: int) -> float | None:
    """A share in per cent; None of nothing."""
    return 100.0 * count / total if total else None


def ends(count: int, total: int) -> tuple[float, float]:
    """95 % interval of a share in per cent (Clopper and Pearson)."""
    found = stats.binomtest(count, total).proportion_ci(0.95)
    return 100.0 * float(found.low), 100.0 * float(found.high)


def table(rows: Iterable[Row]) -> str:
    """Markdown, one line per world, strategy and budget."""
    lines = [f"| {' | '.join(HEADER)} |", f"|{'---|' * len(HEADER)}"]
    for row in sorted(rows, key=lambda row: (row["world"], row["strategy"], row["budget"])):
        n = row["replays"]
        cells = (
            row["world"],
            row["strategy"],
            row["budget"],
            share(row["false_studies"], n),
            share(row["false_finalists"], n),
            share(row["false_layers"], n),
            share(row["covered"], row["intervals"]),
            row["intervals"],
            share(row["right"], row["contrasts"]),
            share(row["first_right"], row["first"]),
            f"{row['layers_decided'] / n:.2f}",
        )
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join(lines)


def share(count: int, total: int) -> str:
    """A share in per cent as printed."""
    value = percent(count, total)
    return "-" if value is None else f"{value:.1f}"


def summary(rows: Sequence[Row]) -> str:
    """What the criteria come to: by strategy, the worst study, the cover, and the power."""
    lines = []
    for strategy in dict.fromkeys(row["strategy"] for row in rows):
        ours = [row for row in rows if row["strategy"] == strategy]
        worst = max(ours, key=lambda row: row["false_studies"] / row["replays"])
        n = worst["replays"]
        low, high = ends(worst["false_studies"], n)
        false = sum(row["false_studies"] for row in ours)
        studies = sum(row["replays"] for row in ours)
        lines.append(
            f"- {strategy}: false verdicts in {share(false, studies)} % of {studies:,} studies; "
            f"most in {worst['world']!r} at {worst['budget']} trials: "
            f"{share(worst['false_studies'], n)} % ({low:.1f} to {high:.1f}) of {n}. "
            f"95 % intervals cover {covers(ours)}. {needed(ours)}"
        )
    return "\n".join(lines)


def covers(rows: Sequence[Row]) -> str:
    """Cover over all rows, and its range over those with many intervals."""
    counted = [(row["covered"], row["intervals"]) for row in rows if row["intervals"] >= 100]
    if not counted:
        return "nothing: too few"
    each = [100.0 * covered / total for covered, total in counted]
    covered, total = (sum(column) for column in zip(*counted, strict=True))
    return f"{share(covered, total)} % (studies: {min(each):.1f} to {max(each):.1f})"


def needed(rows: Sequence[Row]) -> str:
    """From how many trials on nine of ten verdicts on cheap - attention are made and right."""
    words = []
    for world in dict.fromkeys(row["world"] for row in rows):
        enough = [
            row["budget"]
            for row in rows
            if row["world"] == world and row["first_right"] >= 0.9 * row["first"] > 0
        ]
        words.append(f"{world} {min(enough) if enough else 'more'}")
    return "Trials until 90 % of the verdicts on cheap - attention are right: " + ", ".join(words)
