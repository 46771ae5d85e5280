"""The results of `benchmarks.mixers` as a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
LINEAR = 20.0
"""Growth from 128 to 2,048 tokens up to which a mixer is called linear."""
MOST = 1000
"""Ratios above are of a step too short to measure."""
BLOCK_BARS = {("training", 1, 128): 1.0, ("training", 1, 2048): 1.5}
"""Least ratio wanted of a block with `sepconv`."""


def page(rows: Sequence[Row]) -> str:
    """Markdown: machine, bars, ratios, times."""
    ratios = select(rows, "ratio")
    parts = [
        "# Speed of the mixers",
        facts(select(rows, "machine")),
        "![Ratios by shape](mixers.png)",
        "## Bars",
        "What was wanted, and what was measured; a bar that is missed says so. The bars are meant "
        "for wall time on two idle cores; what this run had stands above. They had five times as "
        "many rounds as the rest. Mixing steps are what is left of a layer's time without its "
        "projections: a difference of medians, five of them.",
        table(("comparison", "shape", "width", "pass", "wanted", "measured", ""), bars(rows)),
        "## Whole blocks against the block with fused attention",
        "Mixer, norms and feed-forward layer; above 1 the swap is faster. The FLOP ratio is a "
        "guide, no ceiling.",
        table(("mixer", "shape", "FLOPs", "forward", "training"), block_lines(rows)),
        "## Growth from 128 to 2,048 tokens",
        "Seconds of one sequence of 2,048 tokens over those of one of 128, forward and backward; "
        "16 is linear.",
        table(("mixer", "times"), ((r["name"], ratio(r)) for r in select(rows, "growth"))),
    ]
    for dtype, d_model, kind in places(ratios):
        parts += [
            f"## {dtype}, width {d_model}, {kind}",
            table(("peer's time : ours", *shapes(ratios)), by_shape(ratios, dtype, d_model, kind)),
            table(
                ("milliseconds", *shapes(ratios)),
                by_shape(select(rows, "time"), dtype, d_model, kind),
            ),
        ]
    return "\n\n".join(parts) + "\n"


def facts(machines: Sequence[Row]) -> str:
    """One paragraph about the machine and the method."""
    machine = machines[0]
    clock = {
        "wall": "wall time",
        "processor": "processor time of the process",
        "CUDA events": "time between CUDA events",
    }[machine["clock"]]
    loads, rounds = (sorted({m[name] for m in machines}) for name in ("load", "rounds"))
    return (
        f"{machine['device']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['threads']} thread(s), torch {machine['torch']}; load of the machine when a run "
        f"began: {', '.join(map(str, loads))}. Figures are {clock}: medians of "
        f"{' or '.join(map(str, rounds))} interleaved rounds, ratios taken within a round, least "
        "and most in brackets. Training is forward and backward. Written by "
        "`python -m benchmarks.mixers`."
    )


def bars(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """One line for each bar."""
    lines = []
    for r in select(rows, "ratio"):
        if r["bar"] is not None:
            met = r["median"] >= r["bar"]
            where = (shape(r), r["d_model"], r["kind"])
            lines.append(line(r["name"], *where, f">= {r['bar']:g}", ratio(r), met))
    for r in select(rows, "growth"):
        if r["name"] == "hardmax_shift":
            met = r["median"] <= LINEAR
            name = "`hardmax_shift`, 2,048 tokens : 128"
            lines.append(line(name, "1", r["d_model"], "training", f"<= {LINEAR:g}", ratio(r), met))
    for r in select(rows, "block"):
        wanted = BLOCK_BARS.get((r["kind"], r["batch"], r["seq_len"]))
        if wanted is not None and r["mixer"].startswith("sepconv"):
            met = r["ratio"] >= wanted
            cells = (shape(r), r["d_model"], r["kind"], f">= {wanted:g}", block_ratio(r), met)
            lines.append(line("whole block, `sepconv` : `attention`", *cells))
    return lines


def line(
    name: str, where: str, d_model: int, kind: str, wanted: str, measured: str, met: bool
) -> tuple[str, ...]:
    """A line of the table of bars."""
    return (name, where, str(d_model), kind, wanted, measured, "met" if met else "**missed**")


def block_lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """One line for each mixer and shape."""
    blocks = select(rows, "block")
    keys = dict.fromkeys((r["mixer"], shape(r)) for r in blocks)
    lines = []
    for mixer, where in keys:
        own = {r["kind"]: r for r in blocks if (r["mixer"], shape(r)) == (mixer, where)}
        flops = f"{own['forward']['flops_ratio']:.2f}"
        times = (block_ratio(own[kind]) for kind in ("forward", "training"))
        lines.append((f"`{mixer}`", where, flops, *times))
    return lines


def by_shape(rows: Iterable[Row], dtype: str, d_model: int, kind: str) -> list[tuple[str, ...]]:
    """One line a name, one column a shape."""
    wanted = {"dtype": dtype, "d_model": d_model, "kind": kind}
    own = [row for row in rows if wanted.items() <= row.items()]
    lines = []
    for name in dict.fromkeys(row["name"] for row in own):
        cells = {shape(row): row for row in own if row["name"] == name}
        shown = (cell(cells[where]) if where in cells else "-" for where in shapes(own))
        lines.append((name, *shown))
    return lines


def cell(row: Row) -> str:
    """A time in milliseconds or a ratio."""
    return ratio(row) if row["row"] == "ratio" else f"{1e3 * row['median']:.2f}"


def ratio(row: Row) -> str:
    """A median with its range."""
    return f"{short(row['median'])} ({short(row['least'])} to {short(row['most'])})"


def block_ratio(row: Row) -> str:
    """The same for a block."""
    return ratio({"median": row["ratio"], "least": row["least"], "most": row["most"]})


def short(value: float) -> str:
    """A ratio with three digits."""
    if value > MOST:
        return f"> {MOST}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def shape(row: Row) -> str:
    """Batch and length."""
    return f"{row['batch']} x {row['seq_len']}"


def shapes(rows: Iterable[Row]) -> list[str]:
    """The shapes in their order."""
    return list(dict.fromkeys(shape(row) for row in rows))


def places(rows: Iterable[Row]) -> list[tuple[str, int, str]]:
    """Every dtype, width and pass in their order."""
    return list(dict.fromkeys((row["dtype"], row["d_model"], row["kind"]) for row in rows))


def select(rows: Sequence[Row], kind: str) -> list[Row]:
    """The rows of one kind."""
    return [row for row in rows if row["row"] == kind]


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    shown = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*shown, *(f"| {' | '.join(cells)} |" for cells in lines)])
