"""Does a predictor foretell what an architecture comes to? Statistics over rows of the table.

The unit is the architecture: every number is the mean over its training seeds. Intervals are
percentiles of a bootstrap over architectures, with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mixers.notation import parse_architecture

Floats = NDArray[np.float64]
Statistic = Callable[[Floats, Floats], Floats]

RESAMPLES = 2000
PERMUTATIONS = 5_000
CHUNK = 250
RIDGE = 1.0
MIN_PAIRS = 10
MIN_REPEATED = 3
LEVEL = 0.95
PROBES = ("probe_init", "probe_first", "probe_final")
EARLY = ("selection_first",)
ZERO_COST = ("grad_norm", "snip", "synflow", "jacob_cov", "naswot")
CHEAP = ("params", "flops", "reach", "n_layers")
"""Known without building the network, with the number of layers of each mixer."""


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its interval; they are None where it has none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Found:
    """What one predictor is worth.

    Attributes:
        name: the predictor.
        kind: probe, early loss, zero-cost or cheap.
        tau: Kendall's tau-b with the result.
        rho: Spearman's rho with the result.
        against_probe: |rho| minus that of the probe at initialisation.
        added: cross-validated R^2 that it adds to the cheap predictors; None for those.
        within: tau over pairs with the same number of each mixer; None with fewer than ten of them.
        p_within: its permutation p-value, two-sided.
    """

    name: str
    kind: str
    tau: Estimate
    rho: Estimate
    against_probe: Estimate | None
    added: Estimate | None
    within: float | None
    p_within: float | None


@dataclass(frozen=True)
class Table:
    """Architectures of one study: means over seeds.

    Attributes:
        study: its name.
        target: what is foretold: ``test`` where every trial has it, else ``selection``.
        columns: predictor -> one value per architecture, predictors that vary alone.
        result: the target.
        counts: (architectures, kinds) number of layers of each mixer.
        kinds: the mixers.
        by_seed: (seed, architecture) -> target, for the noise ceiling.
    """

    study: str
    target: str
    columns: Mapping[str, Floats]
    result: Floats
    counts: Floats
    kinds: tuple[str, ...]
    by_seed: Mapping[tuple[int, str], float]


def tabulate(study: str, rows: Sequence[Mapping[str, str]]) -> Table:
    """Gathers the rows of a study by architecture; predictors not known for all are left out."""
    target = "test" if all(row["test"] for row in rows) else "selection"
    grouped: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        grouped.setdefault(row["notation"], []).append(row)
    layers = {
        notation: [block.kind for block in parse_architecture(notation)] for notation in grouped
    }
    kinds = tuple(sorted({kind for stack in layers.values() for kind in stack}))
    counts = np.array([[float(stack.count(kind)) for kind in kinds] for stack in layers.values()])
    columns = {f"{kind} layers": counts[:, i] for i, kind in enumerate(kinds)}
    for name in (*PROBES, *EARLY, *CHEAP, *ZERO_COST):
        known = [[float(row[name]) for row in runs if row[name]] for runs in grouped.values()]
        if all(known):
            columns[name] = np.array([np.mean(values) for values in known])
    return Table(
        study=study,
        target=target,
        columns={name: values for name, values in columns.items() if np.ptp(values) > 0},
        result=np.array([np.mean([float(r[target]) for r in runs]) for runs in grouped.values()]),
        counts=counts,
        kinds=kinds,
        by_seed={(int(row["seed"]), row["notation"]): float(row[target]) for row in rows},
    )


def analyse(table: Table, *, seed: int = 0) -> list[Found]:
    """Every predictor of a table, the probes first."""
    n = len(table.result)
    picks = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
    names = sorted(table.columns, key=lambda name: (kind_order(name), name))
    rhos = {name: spearman(table.columns[name][picks], table.result[picks]) for name in names}
    cheap = cheap_features(table)
    found = []
    for name in names:
        x = table.columns[name]
        kind = kind_of(name)
        against = None
        if name != PROBES[0] and PROBES[0] in rhos:
            probe = abs(one(spearman, table.columns[PROBES[0]], table.result))
            lead = abs(one(spearman, x, table.result)) - probe
            against = ends(lead, np.abs(rhos[name]) - np.abs(rhos[PROBES[0]]))
        within, p_within = stratified(x, table.result, table.counts, seed=seed)
        tau = ends(one(kendall, x, table.result), kendall(x[picks], table.result[picks]))
        found.append(
            Found(
                name=name,
                kind=kind,
                tau=tau,
                rho=ends(one(spearman, x, table.result), rhos[name]),
                against_probe=against,
                added=None if kind == "cheap" else added_r2(cheap, x, table.result, picks),
                within=within,
                p_within=p_within,
            )
        )
    return found


def kind_of(name: str) -> str:
    """Which sort of predictor it is."""
    if name in PROBES:
        return "probe"
    if name in EARLY:
        return "early loss"
    return "zero-cost" if name in ZERO_COST else "cheap"


def kind_order(name: str) -> tuple[int, int]:
    """Probes in the order of training, then the loss, cheap predictors and zero-cost ones."""
    place = ("probe", "early loss", "cheap", "zero-cost").index(kind_of(name))
    return place, PROBES.index(name) if name in PROBES else 0


def kendall(x: Floats, y: Floats) -> Floats:
    """Kendall's tau-b of every row pair, (R, n) and (R, n); NaN where a row is constant."""
    first, second = np.triu_indices(x.shape[1], 1)
    found = np.empty(len(x))
    for start in range(0, len(x), CHUNK):
        rows = slice(start, start + CHUNK)
        a = np.sign(x[rows][:, first] - x[rows][:, second])
        b = np.sign(y[rows][:, first] - y[rows][:, second])
        with np.errstate(invalid="ignore"):
            scale = np.sqrt(np.abs(a).sum(1) * np.abs(b).sum(1))
            found[rows] = (a * b).sum(1) / scale
    return found


def spearman(x: Floats, y: Floats) -> Floats:
    """Spearman's rho of every row pair, (R, n) and (R, n); NaN where a row is constant."""
    a, b = (stats.rankdata(rows, axis=1) - (rows.shape[1] + 1) / 2 for rows in (x, y))
    with np.errstate(invalid="ignore"):
        found: Floats = (a * b).sum(1) / np.sqrt((a**2).sum(1) * (b**2).sum(1))
    return found


def one(statistic: Statistic, x: Floats, y: Floats) -> float:
    """A statistic of the architectures as they are."""
    return float(statistic(x[None], y[None])[0])


def ends(value: float, samples: Floats) -> Estimate:
    """A value with the percentile interval of its resamples."""
    finite = samples[np.isfinite(samples)]
    if len(finite) == 0:
        return Estimate(value)
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, min(float(low), value), max(float(high), value))


def cheap_features(table: Table) -> Floats:
    """The cheap predictors as columns of ranks' standard scores."""
    names = [name for name in table.columns if kind_of(name) == "cheap"]
    return np.column_stack([standard_ranks(table.columns[name]) for name in names])


def standard_ranks(x: Floats) -> Floats:
    """Ranks with mean 0 and SD 1."""
    ranks = stats.rankdata(x)
    scores: Floats = (ranks - ranks.mean()) / ranks.std()
    return scores


def errors_left_out(features: Floats, y: Floats) -> Floats:
    """Error of each y as ridge regression on all others foretells it.

    The penalty is RIDGE on standard scores: with few architectures one of them alone may decide the
    slope of a feature, and plain least squares then foretells it absurdly.
    """
    found = np.empty(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        centre, mean = features[others].mean(0), y[others].mean()
        x = features[others] - centre
        inner = x.T @ x + RIDGE * np.eye(x.shape[1])
        weights = np.linalg.solve(inner, x.T @ (y[others] - mean))
        found[i] = y[i] - mean - (features[i] - centre) @ weights
    return found


def cheap_r2(table: Table) -> float:
    """Cross-validated R^2 of the cheap predictors together (leave one architecture out)."""
    y = table.result
    mean_error = errors_left_out(np.empty((len(y), 0)), y)
    errors = errors_left_out(cheap_features(table), y)
    return 1 - float((errors**2).sum() / (mean_error**2).sum())


def added_r2(cheap: Floats, x: Floats, y: Floats, picks: NDArray[np.int64]) -> Estimate:
    """Cross-validated R^2 with a predictor's ranks minus that without."""
    base = errors_left_out(cheap, y) ** 2
    more = errors_left_out(np.column_stack([cheap, standard_ranks(x)]), y) ** 2
    total = errors_left_out(np.empty((len(y), 0)), y) ** 2
    samples = (base - more)[picks].sum(1) / total[picks].sum(1)
    return ends(float((base - more).sum() / total.sum()), samples)


def stratified(
    x: Floats, y: Floats, counts: Floats, *, seed: int
) -> tuple[float | None, float | None]:
    """Share of concordant minus discordant pairs inside strata of equal mixer counts, and its p.

    Shuffles x inside the strata for the p-value.
    """
    strata = np.unique(counts, axis=0, return_inverse=True)[1].ravel()
    pairs = np.array([(i, k) for i, k in combinations(range(len(x)), 2) if strata[i] == strata[k]])
    if len(pairs) < MIN_PAIRS:
        return None, None
    first, second = pairs.T
    order = np.sign(y[first] - y[second])
    if np.array_equal(x[first], x[second]):
        return None, None
    seen = float((np.sign(x[first] - x[second]) * order).mean())
    random = np.random.default_rng(seed)
    shuffled = np.tile(x, (PERMUTATIONS, 1))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        shuffled[:, members] = random.permuted(shuffled[:, members], axis=1)
    by_chance = (np.sign(shuffled[:, first] - shuffled[:, second]) * order).mean(1)
    extreme = int((np.abs(by_chance) >= abs(seen) - 1e-12).sum())
    return seen, (extreme + 1) / (PERMUTATIONS + 1)


def n_pairs_within(table: Table) -> int:
    """Pairs of architectures with the same number of each mixer."""
    sizes = np.unique(table.counts, axis=0, return_counts=True)[1]
    return int((sizes * (sizes - 1) // 2).sum())


@dataclass(frozen=True)
class Ceiling:
    """How well half of the seeds foretells the other half.

    Attributes:
        rho: mean over the splits, with the least and the most.
        n_architectures: that have all these seeds.
    """

    rho: Estimate
    n_architectures: int


def ceiling(table: Table) -> Ceiling | None:
    """How well half of the seeds foretells the other half: mean rho over the splits.

    No predictor that knows nothing of the seeds can be expected to do better with means over half
    of them. Taken over the architectures that have more seeds than one; None where these are fewer
    than three, or share fewer than two seeds.
    """
    seeds_of: dict[str, set[int]] = {}
    for seed, notation in table.by_seed:
        seeds_of.setdefault(notation, set()).add(seed)
    notations = [notation for notation, seeds in seeds_of.items() if len(seeds) > 1]
    if len(notations) < MIN_REPEATED:
        return None
    seeds = sorted(set.intersection(*(seeds_of[notation] for notation in notations)))
    if len(seeds) < 2:
        return None
    values = np.array([[table.by_seed[seed, name] for name in notations] for seed in seeds])
    half = len(seeds) // 2
    splits = [
        np.isin(np.arange(len(seeds)), chosen) for chosen in combinations(range(len(seeds)), half)
    ]
    found = [one(spearman, values[split].mean(0), values[~split].mean(0)) for split in splits]
    rho = Estimate(float(np.mean(found)), float(min(found)), float(max(found)))
    return Ceiling(rho, len(notations))


@dataclass(frozen=True)
class Agreement:
    """Whether two tables order the architectures that are in both alike.

    Attributes:
        studies: the two.
        n_architectures: in both.
        tau: Kendall's tau-b between the two results.
        rho: Spearman's rho between them.
    """

    studies: tuple[str, str]
    n_architectures: int
    tau: Estimate
    rho: Estimate


def agreement(first: Table, second: Table, *, seed: int = 0) -> Agreement:
    """Rank correlation of two tables' results, with bootstrap intervals over architectures."""
    here, there = results_of(first), results_of(second)
    shared = [notation for notation in here if notation in there]
    x, y = (np.array([results[name] for name in shared]) for results in (here, there))
    picks = np.random.default_rng(seed).integers(0, len(shared), (RESAMPLES, len(shared)))
    tau, rho = (
        ends(one(statistic, x, y), statistic(x[picks], y[picks]))
        for statistic in (kendall, spearman)
    )
    return Agreement((first.study, second.study), len(shared), tau, rho)


def results_of(table: Table) -> dict[str, float]:
    """Each architecture's result."""
    notations = dict.fromkeys(notation for _, notation in table.by_seed)
    return dict(zip(notations, table.result.tolist(), strict=True))
