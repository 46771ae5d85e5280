"""Sets what came out of a second training beside what is on record, number by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search.training.environment import LATENCY

if TYPE_CHECKING:
    from search.messages import TrialResult

EDITED = "+changes"
"""How the commit of an edited checkout ends: what was edited is not on record."""
OF_SPEED = frozenset({LATENCY})
"""Facts about times, on which no number depends that is compared."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A fact of the environment that is another one now."""

    name: str
    recorded: str
    now: str


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Numbers of one kind, beside those on record.

    Attributes:
        what: What they are.
        n: How many.
        equal: How many are the same to the last bit.
        first: The first that is not, in words.
        largest: Largest absolute difference.
    """

    what: str
    n: int
    equal: int
    first: str = ""
    largest: float = 0.0


def differing(recorded: Mapping[str, str], now: Mapping[str, str]) -> tuple[Fact, ...]:
    """Returns the facts that are others now; two edited checkouts never count as the same."""
    return tuple(
        Fact(name=name, recorded=recorded.get(name, ""), now=now.get(name, ""))
        for name in sorted((recorded.keys() | now.keys()) - OF_SPEED)
        if recorded.get(name) != now.get(name) or recorded.get(name, "").endswith(EDITED)
    )


def other_plugins(
    document: Mapping[str, Any], now: Mapping[str, tuple[str, str]]
) -> tuple[Fact, ...]:
    """Returns the architecture's mixers whose package has another version now."""
    kinds = sorted({block["kind"] for block in document["blocks"]})
    pairs = [
        (kind, " ".join(document["plugins"].get(kind, ())), " ".join(now.get(kind, ())))
        for kind in kinds
    ]
    return tuple(
        Fact(name=f"mixer {kind}", recorded=before, now=after)
        for kind, before, after in pairs
        if before != after
    )


def compare(
    document: Mapping[str, Any], curves: Mapping[str, Mapping[int, float]], result: TrialResult
) -> tuple[Compared, ...]:
    """Sets all numbers that do not depend on speed beside those on record."""
    recorded_curve = {
        f"{name} at step {int(step)}": value
        for name, points in document["curves"].items()
        for step, value in points
    }
    curve = {
        f"{name} at step {step}": value
        for name, points in curves.items()
        for step, value in points.items()
    }
    proof = document["proof"] or {}
    return (
        beside("curve", recorded_curve, curve),
        beside("evaluations", flat(document["evaluations"]), flat(result.evaluations)),
        beside(
            "probe",
            flat(document["probes"]),
            flat({reading.when: reading.readings for reading in result.probes}),
        ),
        beside(
            "mixer proof",
            {"sha256": proof.get("sha256")},
            {"sha256": result.proof.sha256 if result.proof is not None else None},
        ),
    )


def flat(nested: Mapping[Any, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns "outer inner" -> value."""
    return {
        f"{outer} {inner}": value for outer, row in nested.items() for inner, value in row.items()
    }


def beside(what: str, recorded: Mapping[str, Any], now: Mapping[str, Any]) -> Compared:
    """Compares values by name; one that is on one side alone is not equal."""
    names = [*recorded, *(name for name in now if name not in recorded)]
    absent = object()
    unequal = [n for n in names if recorded.get(n, absent) != now.get(n, absent)]
    gaps = [
        abs(recorded[name] - now[name])
        for name in unequal
        if isinstance(recorded.get(name), float) and isinstance(now.get(name), float)
    ]
    first = ""
    if unequal:
        name = unequal[0]
        first = f"{name}: recorded {recorded.get(name, 'none')}, now {now.get(name, 'none')}"
    return Compared(
        what=what,
        n=len(names),
        equal=len(names) - len(unequal),
        first=first,
        largest=max(gaps, default=0.0),
    )
