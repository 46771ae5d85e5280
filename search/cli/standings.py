"""The leaderboard of a run as it goes: what has ended so far, by architecture."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from search.rows import TrialRow


@dataclass(frozen=True)
class Standing:
    """One architecture: its mean objective on the selection split over n runs."""

    code: str
    notation: str
    mean: float
    n: int
    params: int | None
    latency_s: float | None
    is_baseline: bool


def standings(rows: "Iterable[TrialRow]", objective: str, direction: str) -> list[Standing]:
    """Return the architectures that have a result, best first.

    Args:
        rows: Trials in any state.
        objective: Metric that ranks.
        direction: `minimize` or `maximize`.
    """
    by_arch: dict[str | None, list[TrialRow]] = defaultdict(list)
    for row in rows:
        if row.state == "completed" and objective in row.selection:
            by_arch[row.arch_id].append(row)
    found = [
        Standing(
            code=runs[0].code,
            notation=runs[0].notation,
            mean=fmean(run.selection[objective] for run in runs),
            n=len(runs),
            params=runs[0].params,
            latency_s=runs[0].latency_s,
            is_baseline=any(run.phase == "baseline" for run in runs),
        )
        for runs in by_arch.values()
    ]
    return sorted(found, key=lambda row: row.mean if direction == "minimize" else -row.mean)
