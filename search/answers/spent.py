"""What a study's budget went to, and what did not end with a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from search.rows import TrialRow

WITHOUT_RESULT = ("failed", "diverged", "stopped")
UNKNOWN = "cause not recorded"


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """A phase's share of the budget.

    Attributes:
        phase: its name.
        n: trials, whatever their outcome.
        reused: those of them whose result was taken over from another study, at no cost.
        seconds: time that their training took.
    """

    phase: str
    n: int
    reused: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Failure:
    """Trials that ended in the same way without a result.

    Attributes:
        state: ``failed``, ``diverged`` or ``stopped``.
        cause: first line of the error, or the reason.
        n: how many trials.
        codes: architectures, each once, in order of their trials.
        first: number of the first trial.
    """

    state: str
    cause: str
    n: int
    codes: tuple[str, ...]
    first: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What the budget went to.

    ``first_failure`` is the cause of the first failed trial, else of the first that diverged.
    """

    by_phase: Mapping[str, int]
    by_state: Mapping[str, int]
    seconds: float
    first_failure: str | None
    phases: tuple[PhaseCost, ...] = ()
    failures: tuple[Failure, ...] = ()


def spent_of(rows: Sequence[TrialRow]) -> Spent:
    """Adds up the trials of a study, in order of the phases' first trials."""
    causes = {
        state: row.error or row.reason
        for state in ("diverged", "failed")
        for row in reversed(rows)
        if row.state == state
    }
    by_phase: Counter[str] = Counter(row.phase for row in rows)
    return Spent(
        by_phase=dict(by_phase),
        by_state=dict(Counter(row.state for row in rows)),
        seconds=sum(row.seconds or 0.0 for row in rows),
        first_failure=causes.get("failed", causes.get("diverged")),
        phases=tuple(_phase_cost(phase, rows) for phase in by_phase),
        failures=_failures(rows),
    )


def _phase_cost(phase: str, rows: Sequence[TrialRow]) -> PhaseCost:
    members = [row for row in rows if row.phase == phase]
    return PhaseCost(
        phase=phase,
        n=len(members),
        reused=sum(row.reused_from is not None for row in members),
        seconds=sum(row.seconds or 0.0 for row in members if row.reused_from is None),
    )


def _failures(rows: Sequence[TrialRow]) -> tuple[Failure, ...]:
    grouped: dict[tuple[str, str], list[TrialRow]] = {}
    for row in rows:
        if row.state in WITHOUT_RESULT:
            cause = row.error or row.reason or UNKNOWN
            grouped.setdefault((row.state, cause), []).append(row)
    return tuple(
        Failure(
            state=state,
            cause=cause,
            n=len(members),
            codes=tuple(dict.fromkeys(row.code for row in members if row.code)),
            first=members[0].number,
        )
        for (state, cause), members in sorted(grouped.items(), key=lambda item: -len(item[1]))
    )
