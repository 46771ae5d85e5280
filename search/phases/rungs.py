"""Asynchronous successive halving: which trials of the search go on past a rung.

Trials of the phase `search` end at the first rung. As soon as one of them is among the best
1/reduction of all that reached its rung, it is promoted: it goes on from its checkpoint to the next
rung, and from the last one to its end (Li et al. 2020, A System for Massively Parallel
Hyperparameter Tuning, algorithm 2). Nothing waits for a rung to fill. Pure functions of rows.

With several objectives the best are those of the lowest non-dominated rank, and within a rank
those in the least crowded part of it (Deb et al. 2002, NSGA-II).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.rows import FINAL_STATES, Phase, Promotion, TrialRow
from search.spec.limits import excesses, limits_of

if TYPE_CHECKING:
    from search.spec.measures import Measure
    from search.spec.study import StudySpec

CUT_PHASE: Phase = "search"

Point = tuple[float, ...]


@dataclass(frozen=True)
class Promotions:
    """What may be promoted now.

    Attributes:
        usual: The next promotion while new trials of the search are to come.
        closing: The same once none is to come any more: then the best of each rung goes on even
            where fewer than `reduction` trials reached it, so that a search ends with a winner.
    """

    usual: Promotion | None = None
    closing: Promotion | None = None


def first_stop(study: StudySpec, phase: Phase) -> int | None:
    """Returns the rung at which a new trial of a phase ends; None = it is trained to its end."""
    return study.rungs[0] if study.rungs and phase == CUT_PHASE else None


def promotions(rows: Sequence[TrialRow], study: StudySpec) -> Promotions:
    """Returns what may be promoted, the highest rung first; nothing for a study without rungs."""
    if not study.rungs:
        return Promotions()
    mine = [row for row in rows if row.phase == CUT_PHASE]
    usual = _next(mine, study, least=0)
    # A trial that is still on its way may yet be the best of its rung.
    is_settled = all(row.state in FINAL_STATES for row in mine)
    return Promotions(usual, usual or (_next(mine, study, least=1) if is_settled else None))


def _next(rows: Sequence[TrialRow], study: StudySpec, least: int) -> Promotion | None:
    stops = (*study.rungs, study.training.steps)
    for level in reversed(range(len(study.rungs))):
        n, ranked = at_rung(rows, study, level)
        for row in ranked[: max(least, n // study.reduction)]:
            if row.state == "pruned" and row.steps == stops[level]:
                until = stops[level + 1]
                is_last = level + 1 == len(study.rungs)
                return Promotion(
                    trial_id=row.id,
                    steps=row.steps,
                    until=None if is_last else until,
                    until_steps=until,
                )
    return None


def at_rung(rows: Sequence[TrialRow], study: StudySpec, level: int) -> tuple[int, list[TrialRow]]:
    """Returns how many trials reached a rung, and those that have a value there, best first.

    A trial that diverged on the way to it has reached it too, as the worst; one that failed tells
    nothing. Where limits bound what is measured on the machine, trials over one come last.
    """
    rung = study.rungs[level]
    on_the_way = [row for row in rows if level == 0 or study.rungs[level - 1] in row.rungs]
    diverged = sum(row.state == "diverged" and rung not in row.rungs for row in on_the_way)
    measures = study.measures
    pairs = [(row, point_at(row, measures, rung)) for row in rows]
    valued = [(row, point) for row, point in pairs if point is not None]
    limits = [limit for limit in limits_of(study) if limit.measure.origin == "measured"]
    over = [max((excesses(row, limits) or {}).values(), default=0.0) > 0 for row, _ in valued]
    places = ranks([point for _, point in valued])
    order = sorted(range(len(valued)), key=lambda i: (over[i], places[i], valued[i][0].number))
    return len(valued) + diverged, [valued[i][0] for i in order]


def point_at(row: TrialRow, measures: Sequence[Measure], rung: int) -> Point | None:
    """Returns the objectives of a trial at a rung, least is best; None unless all are known."""
    if rung not in row.rungs:
        return None
    values = []
    for measure in measures:
        is_metric = measure.origin == "metric"
        value = row.rungs[rung].get(measure.name) if is_metric else measure.value(row)
        if value is None or not math.isfinite(value):
            return None
        values.append(measure.sign * value)
    return tuple(values)


def ranks(points: Sequence[Point]) -> list[tuple[float, ...]]:
    """Returns a sort key for each point, least is best: its front, how crowded it is, its values.

    With one objective that is the order of the values.
    """
    keys: list[tuple[float, ...]] = [()] * len(points)
    for place, front in enumerate(fronts(points)):
        spread = crowding([points[i] for i in front])
        for i, distance in zip(front, spread, strict=True):
            keys[i] = (place, -distance, *points[i])
    return keys


def fronts(points: Sequence[Point]) -> list[list[int]]:
    """Returns the points' indices by front.

    The first front are those that no other point dominates, the next those that none dominates
    outside the fronts before it.
    """
    found: list[list[int]] = []
    # In this order a point is dominated by earlier ones only.
    for i in sorted(range(len(points)), key=lambda i: points[i]):
        for front in found:
            if not any(dominates(points[j], points[i]) for j in reversed(front)):
                front.append(i)
                break
        else:
            found.append([i])
    return found


def dominates(first: Point, second: Point) -> bool:
    """Whether the first is as good in every objective and better in one."""
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def crowding(points: Sequence[Point]) -> list[float]:
    """Returns each point's crowding distance in its front: the larger, the lonelier.

    It sums, over the objectives, the gap between a point's neighbours as a share of the front's
    range; the ends of an objective are infinitely far. An objective in which all are equal adds
    nothing.
    """
    distances = [0.0] * len(points)
    for objective in range(len(points[0]) if points else 0):
        order = sorted(range(len(points)), key=lambda i: points[i][objective])
        values = [points[i][objective] for i in order]
        extent = values[-1] - values[0]
        if extent == 0:
            continue
        distances[order[0]] = distances[order[-1]] = math.inf
        for place in range(1, len(order) - 1):
            distances[order[place]] += (values[place + 1] - values[place - 1]) / extent
    return distances


def n_at_rungs(n_trials: int, study: StudySpec) -> tuple[int, ...]:
    """Returns how many of so many trials of the search train up to each rung, and to the end."""
    counts = [n_trials]
    for _ in study.rungs:
        counts.append(min(counts[-1], max(1, counts[-1] // study.reduction)))
    return tuple(counts)


def cost_in_trials(n_trials: int, n_search: int, study: StudySpec) -> float:
    """Returns how many whole trainings so many trials cost, of which so many are search."""
    if not study.rungs:
        return float(n_trials)
    return n_trials - n_search + search_steps(n_search, study) / study.training.steps


def search_steps(n_trials: int, study: StudySpec) -> int:
    """Returns the steps that so many trials of the search take in all, where none comes back.

    A rung that fills slowly promotes some trials that fall behind later, so it may be some more.
    """
    stops = (0, *study.rungs, study.training.steps)
    lengths = [end - start for start, end in itertools.pairwise(stops)]
    counts = n_at_rungs(n_trials, study)
    return sum(n * length for n, length in zip(counts, lengths, strict=True))
