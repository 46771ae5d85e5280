"""From outputs to readings: separation, distinctness and gaps, per stratum and probe point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from search.probe.clusters import Floats, count_clusters
from search.probe.network import FrozenNetwork, Rows
from search.probe.noise import noise_floor
from search.probe.strata import Pairs

BORDERLINE = 4.0
"""Separated by no more than this many tau counts as borderline."""


@dataclass
class Spread:
    """Running trace of the covariance of vectors (the population's, 1 / n)."""

    n: int = 0
    total: float = 0.0
    mean: Tensor = field(default_factory=lambda: torch.zeros(()))

    def add(self, x: Tensor) -> None:
        """Takes in vectors (n, D)."""
        n = len(x)
        mean = x.mean(0)
        shift = mean - self.mean if self.n else torch.zeros_like(mean)
        self.total += float(((x - mean) ** 2).sum())
        self.total += float((shift**2).sum()) * self.n * n / (self.n + n)
        self.mean = self.mean + shift * n / (self.n + n) if self.n else mean
        self.n += n

    @property
    def sigma(self) -> float:
        """Root mean square distance of two random items: sigma^2 = 2 tr Cov."""
        return float((2 * self.total / self.n) ** 0.5) if self.n else 0.0


@dataclass
class Compared:
    """What one stratum gave at one probe point: (pairs, N) throughout, float64.

    Attributes:
        distance: between the outputs of base and variant.
        tau: larger threshold of the two.
        counted: positions that are compared: real, unedited, of pairs that must differ.
        equal: positions that must be equal: real, unedited, of pairs of one class.
        to_edit: tokens to the nearest edit.
        clusters: sum over (base, position) of clusters - 1.
        classes: sum over (base, position) of classes - 1.
    """

    distance: Tensor
    tau: Tensor
    counted: Tensor
    equal: Tensor
    to_edit: Tensor
    clusters: int
    classes: int


@dataclass
class Measured:
    """Everything one run of the probe saw.

    Attributes:
        compared: (point, stratum) -> what was compared.
        spread: point -> covariance of all items whose contexts are token sequences.
        items: rows, outputs (rows, N, D) and thresholds at the last point, if they were kept.
    """

    compared: dict[tuple[str, str], Compared]
    spread: dict[str, Spread]
    items: list[tuple[Rows, Tensor, Tensor]]


def measure(
    network: FrozenNetwork,
    bases: Rows,
    strata: Sequence[Pairs],
    *,
    positional: bool,
    seed: int,
    floor_of_variants: bool,
    keep_bases: int,
    chunk: int,
) -> Measured:
    """Runs bases and variants through the network and compares them, some bases at a time.

    Args:
        network: what is probed.
        bases: the base contexts.
        strata: their variants.
        positional: mode; equivariant networks need not separate permuted contexts.
        seed: of the noise floor.
        floor_of_variants: measure tau of each variant too; else a pair takes the largest tau of
            its base.
        keep_bases: of how many bases to keep the outputs at the last point.
        chunk: bases at a time, which bounds the memory.
    """
    pieces: dict[tuple[str, str], list[Compared]] = {}
    spread = {point: Spread() for point in network.points}
    items: list[tuple[Rows, Tensor, Tensor]] = []

    def run(rows: Rows, with_floor: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        outputs = network(rows)
        if rows.push is None:
            for point, h in outputs.items():
                spread[point].add(h[rows.mask])
        if not with_floor:
            return outputs, {}
        tau = noise_floor(network, rows, outputs, permute_tokens=not positional, seed=seed)
        if start < keep_bases and rows.push is None:
            items.append((rows, outputs[network.last_point], tau[network.last_point]))
        return outputs, tau

    for start in range(0, len(bases.tokens), chunk):
        base = bases.select(slice(start, start + chunk))
        base_outputs, base_tau = run(base, True)
        for pairs in (stratum.select(slice(start, start + chunk)) for stratum in strata):
            outputs, tau = run(_rows_of(pairs, base.mask), floor_of_variants)
            for point in network.points:
                h = outputs[point].view(*pairs.tokens.shape, -1)
                if floor_of_variants:
                    own = tau[point].view(pairs.tokens.shape)
                    threshold = torch.cat([base_tau[point][:, None], own], dim=1)
                else:
                    worst = base_tau[point].amax(-1)[:, None, None]
                    threshold = worst.expand(-1, 1 + h.shape[1], h.shape[2])
                stacked = torch.cat([base_outputs[point][:, None], h], dim=1)
                pieces.setdefault((point, pairs.name), []).append(
                    compare(stacked, threshold, base, pairs, positional=positional)
                )
    return Measured({key: _joined(parts) for key, parts in pieces.items()}, spread, items)


def compare(h: Tensor, tau: Tensor, base: Rows, pairs: Pairs, *, positional: bool) -> Compared:
    """Compares bases and variants at one probe point.

    Args:
        h: (bases, 1 + variants, N, D), the base first.
        tau: (bases, 1 + variants, N).
        base: the base contexts.
        pairs: their variants in one stratum.
        positional: mode.
    """
    same = pairs.same_class(base.tokens, positional)
    unedited = base.mask[:, None] & ~pairs.edited & pairs.edited.any(-1, keepdim=True)
    must_differ = ~same[:, 0, 1:, None]
    first = _first_of_class(same, torch.cat([base.mask[:, None], unedited], dim=1))
    n_classes = first.sum(1)
    n_clusters = count_clusters(
        h.transpose(1, 2).flatten(0, 1),
        tau.transpose(1, 2).flatten(0, 1),
        first.transpose(1, 2).flatten(0, 1),
    ).view_as(n_classes)
    groups = n_classes >= 2
    return Compared(
        distance=torch.linalg.vector_norm(h[:, 1:] - h[:, :1], dim=-1).flatten(0, 1),
        tau=torch.maximum(tau[:, 1:], tau[:, :1]).flatten(0, 1),
        counted=(unedited & must_differ).flatten(0, 1),
        equal=(unedited & ~must_differ).flatten(0, 1),
        to_edit=pairs.distance().flatten(0, 1),
        clusters=int((n_clusters - 1)[groups].sum()),
        classes=int((n_classes - 1)[groups].sum()),
    )


def read(compared: Compared, sigma: float) -> dict[str, float | None]:
    """The readings of one stratum at one probe point.

    ``p_sep`` is the separated share of (pair, unedited position), ``borderline`` the share that is
    separated by at most four thresholds, ``d_ctx`` the distinctness within (base, position), and
    ``gap_*`` the smallest, 1 % and median distance in units of sigma. A distance that is not
    separated is rounding, and its gap is 0. ``equality_error`` is the largest gap between outputs
    that must be equal. None where there is nothing to read.
    """
    seen = (compared.distance > compared.tau)[compared.counted]
    close = seen & (compared.distance <= BORDERLINE * compared.tau)[compared.counted]
    gaps = gaps_of(compared, sigma)
    equal = compared.distance[compared.equal] / _unit(sigma)
    return {
        "p_sep": float(seen.double().mean()) if len(seen) else None,
        "borderline": float(close.double().mean()) if len(seen) else None,
        "d_ctx": compared.clusters / compared.classes if compared.classes else None,
        "gap_min": float(gaps.min()) if len(gaps) else None,
        "gap_p01": float(np.quantile(gaps, 0.01)) if len(gaps) else None,
        "gap_median": float(np.median(gaps)) if len(gaps) else None,
        "equality_error": float(equal.max()) if len(equal) else None,
    }


def gaps_of(compared: Compared, sigma: float) -> Floats:
    """Distances of the compared items in units of sigma, 0 where they are not separated."""
    separated = compared.distance > compared.tau
    gap = torch.where(separated, compared.distance, 0.0) / _unit(sigma)
    gaps: Floats = gap[compared.counted].numpy()
    return gaps


def _unit(sigma: float) -> float:
    return sigma if sigma > 0 else 1.0


def profile(compared: Compared) -> dict[int, float]:
    """Separated share by distance to the nearest edit, in tokens."""
    separated = (compared.distance > compared.tau)[compared.counted].numpy()
    distance = compared.to_edit[compared.counted].numpy()
    total = np.bincount(distance)
    share = np.bincount(distance, weights=separated)
    return {int(d): float(share[d] / total[d]) for d in np.flatnonzero(total)}


def far(compared: Compared, reach: int) -> float | None:
    """Separated share of the positions further than ``reach`` tokens from the nearest edit."""
    beyond = compared.counted & (compared.to_edit > reach)
    seen = (compared.distance > compared.tau)[beyond]
    return float(seen.double().mean()) if len(seen) else None


def _rows_of(pairs: Pairs, mask: Tensor) -> Rows:
    return Rows(
        pairs.tokens.flatten(0, 1),
        mask.repeat_interleave(pairs.tokens.shape[1], dim=0),
        None if pairs.push is None else pairs.push.flatten(0, 1),
        None if pairs.direction is None else pairs.direction.flatten(0, 1),
    )


def _first_of_class(same: Tensor, takes_part: Tensor) -> Tensor:
    """Items (bases, m, N) that take part and are the first of their class to do so."""
    m = same.shape[1]
    earlier = torch.ones(m, m, dtype=torch.bool).tril(-1) & same
    repeated = torch.einsum("bik,bkn->bin", earlier.double(), takes_part.double()) > 0
    return takes_part & ~repeated


def _joined(parts: Sequence[Compared]) -> Compared:
    return Compared(
        distance=torch.cat([part.distance for part in parts]),
        tau=torch.cat([part.tau for part in parts]),
        counted=torch.cat([part.counted for part in parts]),
        equal=torch.cat([part.equal for part in parts]),
        to_edit=torch.cat([part.to_edit for part in parts]),
        clusters=sum(part.clusters for part in parts),
        classes=sum(part.classes for part in parts),
    )
