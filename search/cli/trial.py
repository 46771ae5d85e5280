"""One trial in full, as text: what ran, what came out, what it cost, and the proof of it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from search.cli.numbers import ABSENT, decimals, size_in_bytes
from search.cli.output import LEFT, RIGHT, table

LABEL_WIDTH = 14


def trial_text(trial: Mapping[str, Any]) -> str:
    """Set a trial as a page of text.

    Args:
        trial: The document that `Store.trial` returns.
    """
    parts = (
        _head(trial),
        _failure(trial),
        _layers(trial),
        _evaluations(trial),
        _curves(trial),
        _costs(trial),
        _probes(trial),
        _proof(trial),
        _attempts(trial),
        _environment(trial),
    )
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part)))


def _line(label: str, value: object) -> str:
    return f"{label:<{LABEL_WIDTH}}{value}"


def _head(trial: Mapping[str, Any]) -> Iterator[str]:
    from search.store.routes import route_words
    from search.wording import time_text

    role = f", {trial['role'].replace('_', ' ').replace(':', ' ')}" if trial["role"] else ""
    yield _line("trial", f"{trial['number']} of {trial['study']} ({trial['phase']}{role})")
    reason = f" ({trial['reason']})" if trial["reason"] else ""
    yield _line("state", f"{trial['state']}{reason}")
    yield _line("layers", f"{trial['code'] or ABSENT}  {trial['notation'] or ''}".rstrip())
    yield _line("architecture", trial["arch_id"] or ABSENT)
    if words := route_words(trial["route"]):
        yield _line("route", words)
    yield _line("seed", f"{trial['seed']} (repeat {trial['seed_index']})")
    if trial["steps"] is not None:
        yield _line("trained", f"{trial['steps']} steps in {time_text(trial['seconds'])}")
    yield _line("worker", trial["worker"] or ABSENT)
    if trial["reused_from"] is not None:
        yield _line("reused from", f"trial with id {trial['reused_from']}")
    yield _line("created", _moment(trial["created_at"]))
    if trial["finished_at"]:
        yield _line("finished", _moment(trial["finished_at"]))


def _moment(text: str) -> str:
    """A stored time, to the second."""
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S UTC")


def _failure(trial: Mapping[str, Any]) -> Iterator[str]:
    if trial["error"]:
        yield _line("error", trial["error"])
    for attempt in trial["attempts"]:
        if attempt.get("traceback"):
            yield _line("traceback", f"of attempt {attempt['number']}")
            yield from (f"  {line}" for line in attempt["traceback"].rstrip().splitlines())


def _layers(trial: Mapping[str, Any]) -> Iterator[str]:
    if trial["blocks"]:
        yield "Layers, first at the input"
        for block in trial["blocks"]:
            yield _line(f"  {block['layer']}", block["notation"])


def _evaluations(trial: Mapping[str, Any]) -> Iterator[str]:
    splits: Mapping[str, Mapping[str, float]] = trial["evaluations"]
    if not splits:
        return
    names = sorted({name for metrics in splits.values() for name in metrics})
    names.sort(key=lambda name: name != trial["objective"])
    yield "Evaluations, after the last step"
    yield from _indented(
        table(
            (("split", LEFT), *((name, RIGHT) for name in names)),
            [
                (split, *(decimals(splits[split].get(name)) for name in names))
                for split in sorted(splits)
            ],
        )
    )


def _curves(trial: Mapping[str, Any]) -> Iterator[str]:
    curves: Mapping[str, Sequence[Sequence[float]]] = trial["curves"]
    if not curves:
        return
    names = sorted(curves, key=lambda name: (name.split(".")[1] != trial["objective"], name))
    steps = sorted({point[0] for points in curves.values() for point in points})
    values = {name: {point[0]: point[1] for point in curves[name]} for name in names}
    yield "Curve"
    yield from _indented(
        table(
            (("step", RIGHT), *((name.replace(".", " "), RIGHT) for name in names)),
            [
                (str(int(step)), *(decimals(values[name].get(step)) for name in names))
                for step in steps
            ],
        )
    )


def _costs(trial: Mapping[str, Any]) -> Iterator[str]:
    from search.wording import scaled

    costs = trial["costs"]
    if not costs:
        return
    yield "Costs"
    yield _line("  parameters", scaled(costs["params"]))
    yield _line("  forward", f"{scaled(costs['flops'])} FLOPs per sequence")
    where = f"{costs['device'] or 'unknown device'}, {costs['dtype'] or 'unknown format'}"
    for label, name, batch in (
        ("  step", "step", costs["step_batch_size"]),
        ("  latency", "latency", costs["latency_batch_size"]),
    ):
        if costs[f"{name}_s"] is not None:
            size = f"batch {batch} of {costs['seq_len']} tokens"
            yield _line(label, f"{_spread(costs, name)}, {size}, {where}")
    yield _line("  peak memory", size_in_bytes(costs["peak_memory_bytes"]))


def _spread(costs: Mapping[str, Any], name: str) -> str:
    from search.wording import time_text

    low, high = time_text(costs[f"{name}_s_low"]), time_text(costs[f"{name}_s_high"])
    return f"{time_text(costs[f'{name}_s'])} median of {costs[f'{name}_n']} ({low} to {high})"


def _probes(trial: Mapping[str, Any]) -> Iterator[str]:
    probes: Mapping[str, Mapping[str, float | None]] = trial["probes"]
    if not probes:
        return
    moments = [moment for moment in ("init", "final") if moment in probes]
    names = sorted({name for moment in moments for name in probes[moment]})
    names.sort(key=lambda name: name != "probe")
    yield "Probe of contextual mapping"
    yield from _indented(
        table(
            (("reading", LEFT), *((moment, RIGHT) for moment in moments)),
            [
                (name, *(_significant(probes[moment].get(name)) for moment in moments))
                for name in names
            ],
        )
    )


def _significant(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4g}"


def _proof(trial: Mapping[str, Any]) -> Iterator[str]:
    proof = trial["proof"]
    if not proof:
        return
    yield f"Mixers that really ran, sha256 {proof['sha256']}"
    yield from _indented(
        table(
            (("layer", RIGHT), ("class", LEFT), ("from", LEFT), ("influence", LEFT)),
            [
                (
                    str(layer),
                    row["qualified_class"],
                    f"{row['distribution']} {row['version']}",
                    _influence(row["influence"]),
                )
                for layer, row in enumerate(proof["layers"])
            ],
        )
    )


def _influence(pattern: Sequence[str]) -> str:
    moved = sum(row.count("1") for row in pattern)
    return f"{moved} of {len(pattern) ** 2} pairs"


def _attempts(trial: Mapping[str, Any]) -> Iterator[str]:
    if not trial["attempts"]:
        return
    yield "Attempts"
    yield from _indented(
        table(
            (
                ("#", RIGHT),
                ("outcome", LEFT),
                ("step", RIGHT),
                ("started", LEFT),
                ("message", LEFT),
            ),
            [
                (
                    str(attempt["number"]),
                    attempt["outcome"] or "running",
                    str(attempt["step"]),
                    _moment(attempt["started_at"]),
                    attempt["message"] or attempt["cause"] or "",
                )
                for attempt in trial["attempts"]
            ],
            flexible=("message",),
        )
    )


def _environment(trial: Mapping[str, Any]) -> Iterator[str]:
    facts = sorted(trial["environment"].items())
    if facts:
        yield "Environment"
        width = max(len(name) for name, _ in facts)
        yield from (f"  {name:<{width}}  {value}" for name, value in facts)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
