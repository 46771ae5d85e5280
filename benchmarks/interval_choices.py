"""Why the verdicts' intervals are what they are: four choices, each beside what was not chosen.

    python -m benchmarks.interval_choices [--draws 20000]

Normal runs with known truth; the numbers are quoted in docs/decisions.md.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from search.answers.family import FIRST_LEVEL
from search.answers.intervals import MOST_DF_PER_RUN_DF
from search.answers.pairing import PAIRED_BELOW
from search.answers.variance import POOLED_ABOVE
from search.phases.finalists import FINALIST_ROLES, Finalist, turns

Array = NDArray[np.float64]
LEVEL = 0.95
FAR = 4.0  # planted difference, in SD of a run


def main() -> None:
    """Prints the four tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20_000)
    draws = parser.parse_args().draws
    generator = np.random.default_rng(0)
    for title, lines in (
        ("Pooling: cover of 95 % intervals (half width / true error)", pooling(generator, draws)),
        ("Order: power for 4 SD at the first level, contrast by contrast", order(generator, draws)),
        ("Documents: cover of 95 % intervals of seeds and documents", documents(generator, draws)),
        ("Common seeds: width of paired / unpaired, and cover", pairing(generator, draws)),
    ):
        print(f"## {title}\n")
        print("\n".join(lines), end="\n\n")


def pooling(generator: np.random.Generator, draws: int) -> Iterator[str]:
    """Own variances against a pool of four architectures where Bartlett's test allows it."""
    yield "| runs each | noise of the reference | own | pooled | p > 0.25 |"
    yield "|---|---|---|---|---|"
    for n in (2, 3, 4, 7):
        for ratio in (1.0, 3.0, 5.0):
            sds = (1.0, ratio, 1.0, 1.0)
            runs = [generator.normal(0, sd, (draws, n)) for sd in sds]
            variances = np.stack([group.var(1, ddof=1) for group in runs], 1)
            gap = runs[0].mean(1) - runs[1].mean(1)
            own = half_width(variances[:, :2] / n, (n - 1, n - 1), LEVEL)
            pool = variances.mean(1)
            shared = stats.t.ppf((1 + LEVEL) / 2, 4 * (n - 1)) * np.sqrt(2 * pool / n)
            allowed = np.where(bartlett_p(variances, n) > POOLED_ABOVE, shared, own)
            error = math.hypot(1.0, ratio) / math.sqrt(n)
            cells = (
                f"{np.mean(abs(gap) <= half):.3f} ({np.median(half) / error:.1f})"
                for half in (own, shared, allowed)
            )
            yield f"| {n} | x {ratio:g} | {' | '.join(cells)} |"


def order(generator: np.random.Generator, draws: int) -> Iterator[str]:
    """Turns one after the other against the turns of `search.phases.finalists`."""
    yield "| runs | one after the other: reference, shorter, rival | in turns of the search |"
    yield "|---|---|---|"
    for n in (4, 6, 8, 13, 20):
        cells = [
            " ".join(f"{value:.2f}" for value in powers(generator, draws, served))
            for served in ([(n - i + 3) // 4 for i in range(4)], served_in_turns(n))
        ]
        yield f"| {n} | {' | '.join(cells)} |"


def served_in_turns(n_runs: int) -> list[int]:
    """Runs of each finalist after so many turns of a real run."""
    chosen = [Finalist(role, (role,)) for role in FINALIST_ROLES]
    served = Counter(finalist.role for finalist, _ in islice(turns(chosen, ()), n_runs))
    return [served[role] for role in FINALIST_ROLES]


def powers(generator: np.random.Generator, draws: int, served: Sequence[int]) -> Iterator[float]:
    """How often each contrast with the pick finds a difference of `FAR`."""
    runs = [generator.normal(0, 1, (draws, n)) for n in served]
    for n, other in zip(served[1:], runs[1:], strict=True):
        if min(served[0], n) < 2:
            yield 0.0
            continue
        parts = np.stack([runs[0].var(1, ddof=1) / served[0], other.var(1, ddof=1) / n], 1)
        half = half_width(parts, (served[0] - 1, n - 1), FIRST_LEVEL)
        yield float(np.mean(FAR + other.mean(1) - runs[0].mean(1) > half))


def documents(generator: np.random.Generator, draws: int) -> Iterator[str]:
    """Degrees of freedom of the sum: Satterthwaite's, and bounded by those of the runs."""
    yield "| runs each | noise of the reference | documents' error / seeds' | unbounded | bounded |"
    yield "|---|---|---|---|---|"
    for n in (2, 3, 4, 7):
        for ratio in (1.0, 5.0):
            for share in (0.25, 0.5, 1.0):
                runs = [generator.normal(0, sd, (draws, n)) for sd in (1.0, ratio)]
                floor = share * math.hypot(1.0, ratio) / math.sqrt(n)
                gap = runs[0].mean(1) - runs[1].mean(1) + floor * generator.standard_normal(draws)
                known = floor**2 * generator.chisquare(31, draws) / 31
                parts = np.stack([*(group.var(1, ddof=1) / n for group in runs), known], 1)
                most = MOST_DF_PER_RUN_DF * 2 * (n - 1)
                halves = (
                    half_width(parts, (n - 1, n - 1, 31), LEVEL),
                    half_width(parts, (n - 1, n - 1, 31), LEVEL, most),
                )
                cells = " | ".join(f"{np.mean(abs(gap) <= half):.3f}" for half in halves)
                yield f"| {n} | x {ratio:g} | {share:g} | {cells} |"


def pairing(generator: np.random.Generator, draws: int) -> Iterator[str]:
    """Unpaired, paired, the narrower, and paired by the rule, over seeds that move together."""
    yield "| seeds | correlation | paired / unpaired | unpaired | narrower | by rule | its width |"
    yield "|---|---|---|---|---|---|---|"
    for n in (3, 4, 7):
        for rho in (0.0, 0.3, 0.6, 0.9):
            common = generator.standard_normal((draws, n))
            left, right = (
                math.sqrt(rho) * common + math.sqrt(1 - rho) * generator.standard_normal((draws, n))
                for _ in range(2)
            )
            gap = left.mean(1) - right.mean(1)
            parts = np.stack([left.var(1, ddof=1) / n, right.var(1, ddof=1) / n], 1)
            apart = half_width(parts, (n - 1, n - 1), LEVEL)
            error = (left - right).std(1, ddof=1) / math.sqrt(n)
            paired = stats.t.ppf((1 + LEVEL) / 2, n - 1) * error
            narrower = np.minimum(apart, paired)
            ruled = np.where(positive_p(left, right) <= PAIRED_BELOW, paired, apart)
            covers = (f"{np.mean(abs(gap) <= half):.3f}" for half in (apart, narrower, ruled))
            width = f"{np.mean(ruled) / np.mean(apart):.2f}"
            ratio = f"{np.median(paired / apart):.2f}"
            yield f"| {n} | {rho:g} | {ratio} | {' | '.join(covers)} | {width} |"


def positive_p(left: Array, right: Array) -> Array:
    """One-sided p-value of each row's correlation being above 0."""
    n = left.shape[1]
    a, b = (x - x.mean(1, keepdims=True) for x in (left, right))
    r = (a * b).sum(1) / np.sqrt((a**2).sum(1) * (b**2).sum(1))
    result: Array = stats.t.sf(r * np.sqrt((n - 2) / (1 - r**2)), n - 2)
    return result


def half_width(
    parts: Array, dfs: Sequence[float], level: float, most_df: float = math.inf
) -> Array:
    """Half width of the interval of a sum of variances (draws, parts), after Satterthwaite."""
    total = parts.sum(1)
    df = total**2 / (parts**2 / np.asarray(dfs, dtype=np.float64)).sum(1)
    quantile = stats.t.ppf((1 + level) / 2, np.minimum(df, most_df))
    result: Array = quantile * np.sqrt(total)
    return result


def bartlett_p(variances: Array, n: int) -> Array:
    """Bartlett's p-value for each row of equally many runs' variances (draws, groups)."""
    groups = variances.shape[1]
    df = groups * (n - 1)
    statistic = df * np.log(variances.mean(1)) - (n - 1) * np.log(variances).sum(1)
    statistic /= 1 + (groups / (n - 1) - 1 / df) / (3 * (groups - 1))
    result: Array = stats.chi2.sf(statistic, groups - 1)
    return result


if __name__ == "__main__":
    main()
