"""How many outputs are distinct beyond the noise floor.

Two outputs i and k are separated iff ||h_i - h_k|| > max(tau_i, tau_k). Clusters are formed by
leaders: going through the outputs in a fixed order, each joins the first leader that it is not
separated from, or becomes a leader itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WINDOW = 4.0
"""Leaders are looked for within this many times the largest tau of the first projection."""
MOST_COMPARED = 2**15
"""Rows that are compared with a leader at a time, which bounds the memory."""
MOST_LAGS = 64
"""Neighbours on the first projection whose second projection is looked at before the sweep."""


def cluster(points: Floats, tau: Floats, groups: Ints | None = None, *, seed: int = 0) -> Ints:
    """Labels of the leader clusters of M points, O(M d + M log M) when few points are close.

    Bitwise equal rows are taken together first (-0.0 equals 0.0; the largest tau counts). The rest
    is projected on two random unit vectors u and sorted by the first projection; since
    |u.x - u.y| <= ||x - y||, a point that no other is near to on both is a cluster of its own. The
    others are swept by the leaders whose first projection is near; only pairs that both projections
    leave open need the full distance.

    Args:
        points: (M, D).
        tau: (M,), thresholds.
        groups: (M,), clusters lie within a group; None = one group.
        seed: of the two directions.

    Returns:
        (M,) labels; equal label = same cluster.
    """
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    groups = np.zeros(len(points), dtype=np.int64) if groups is None else groups
    index, largest, inverse = _merge_equal(points, tau, groups)
    directions = np.random.default_rng(seed).standard_normal((2, points.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    first, second = directions @ points[index].T
    order = np.lexsort((first, groups[index]))
    labels = np.empty(len(index), dtype=np.int64)
    labels[order] = _sweep(
        points[index[order]],
        largest[order],
        groups[index[order]],
        first[order],
        second[order],
    )
    return labels[inverse]


def _merge_equal(points: Floats, tau: Floats, groups: Ints) -> tuple[Ints, Floats, Ints]:
    """A member of each set of equal rows, the set's largest tau, and the set of every point."""
    bits = np.ascontiguousarray(points + 0.0).view(np.uint64)
    factors = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64) * 2 + 1
    marks = bits @ factors + groups.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    _, index, inverse = np.unique(marks, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(index[inverse] != np.arange(len(bits)))
    chosen = index[inverse[repeated]]
    if not (
        np.array_equal(groups[repeated], groups[chosen])
        and np.array_equal(bits[repeated], bits[chosen])
    ):  # different rows with one mark
        whole = np.column_stack([groups.view(np.uint64), bits])
        _, index, inverse = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    largest = np.zeros(len(index))
    np.maximum.at(largest, inverse, tau)
    return index, largest, inverse.astype(np.int64)


def _has_neighbour(groups: Ints, first: Floats, second: Floats, window: float) -> NDArray[np.bool_]:
    """Which points another of the group is near to on both projections, sorted by the first."""
    has_neighbour = np.zeros(len(first), dtype=bool)
    near = np.arange(len(first))
    for lag in range(1, MOST_LAGS + 1):
        near = near[near < len(first) - lag]
        is_near = (first[near + lag] - first[near] <= window) & (groups[near + lag] == groups[near])
        near = near[is_near]
        if len(near) == 0:
            return has_neighbour
        both = near[np.abs(second[near + lag] - second[near]) <= window]
        has_neighbour[both] = has_neighbour[both + lag] = True
    # So many are near that the sweep has to tell them apart: all up to a window after each of them.
    opened = np.zeros(len(first) + 1, dtype=np.int64)
    for group in np.unique(groups[near]):
        start, stop = np.searchsorted(groups, (group, group + 1))
        members = near[slice(*np.searchsorted(groups[near], (group, group + 1)))]
        ends = start + np.searchsorted(first[start:stop], first[members] + window, "right")
        np.add.at(opened, members, 1)
        np.add.at(opened, ends, -1)
    return has_neighbour | (np.cumsum(opened[:-1]) > 0)


def _sweep(rows: Floats, tau: Floats, groups: Ints, first: Floats, second: Floats) -> Ints:
    """Label, for rows sorted by group and ``first``, as the position of each row's leader.

    A leader takes the free rows after it that it is not separated from, so that the work grows with
    the leaders: where all rows are equal up to rounding there is one.
    """
    window = WINDOW * float(tau.max())
    labels = np.arange(len(rows), dtype=np.int64)
    is_free = _has_neighbour(groups, first, second, window)
    for leader in np.flatnonzero(is_free):
        if not is_free[leader]:
            continue
        is_free[leader] = False
        last = int(np.searchsorted(groups, groups[leader], "right"))
        stop = leader + int(np.searchsorted(first[leader:last], first[leader] + window, "right"))
        for start in range(leader + 1, stop, MOST_COMPARED):
            near = start + np.flatnonzero(is_free[start : min(start + MOST_COMPARED, stop)])
            limit = np.maximum(tau[near], tau[leader])
            is_close = (np.abs(first[near] - first[leader]) <= limit) & (
                np.abs(second[near] - second[leader]) <= limit
            )
            near, limit = near[is_close], limit[is_close]
            joined = near[np.linalg.norm(rows[near] - rows[leader], axis=1) <= limit]
            labels[joined] = leader
            is_free[joined] = False
    return labels


@dataclass(frozen=True)
class Distinctness:
    """Distinct outputs among items that must differ.

    Attributes:
        d_ctx: sum over keys of (clusters - 1) / sum of (classes - 1); None without a key that has
            two classes. Identity reads 0, a contextual mapping 1.
        s_ctx: 1 - merged pairs / required pairs of classes within keys; None likewise.
        d_all: (clusters - 1) / (classes - 1) over all classes; None for a single class.
        cross_key_merged: pairs of classes of different keys that share a cluster.
        split_classes: classes whose items, which must be equal, are separated.
    """

    d_ctx: float | None
    s_ctx: float | None
    d_all: float | None
    cross_key_merged: int
    split_classes: int


def distinctness(
    outputs: Floats, keys: Ints, classes: Ints, tau: Floats, *, seed: int = 0
) -> Distinctness:
    """Counts clusters of outputs against the classes that must be told apart.

    Args:
        outputs: (M, D), one row an item (a token of a context).
        keys: (M,), equal = same key (token and position, or token).
        classes: (M,), equal = same class; a class lies within one key.
        tau: (M,), noise thresholds.
        seed: of the sweep's directions.
    """
    _, index, inverse = np.unique(classes, return_index=True, return_inverse=True)
    distance = np.linalg.norm(outputs - outputs[index][inverse], axis=1)
    split = np.unique(inverse[distance > np.maximum(tau, tau[index][inverse])])
    outputs, keys, tau = outputs[index], keys[index], tau[index]
    m = len(outputs)
    per_key = np.unique(keys, return_counts=True)[1]
    n_classes, required = m - len(per_key), _pairs_within(per_key)
    within = np.unique(cluster(outputs, tau, keys, seed=seed), return_counts=True)[1]
    labels = cluster(outputs, tau, seed=seed)
    overall = np.unique(labels, return_counts=True)[1]
    together = np.unique(labels * (int(keys.max()) + 1) + keys, return_counts=True)[1]
    return Distinctness(
        d_ctx=(len(within) - len(per_key)) / n_classes if n_classes else None,
        s_ctx=1 - _pairs_within(within) / required if required else None,
        d_all=(len(overall) - 1) / (m - 1) if m > 1 else None,
        cross_key_merged=_pairs_within(overall) - _pairs_within(together),
        split_classes=len(split),
    )


def _pairs_within(sizes: Ints) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def count_clusters(points: Tensor, tau: Tensor, first_of_class: Tensor) -> Tensor:
    """Leader clusters of many small groups at once, in the order of their items.

    Args:
        points: (G, m, D).
        tau: (G, m).
        first_of_class: (G, m) bool; only these items take part.

    Returns:
        (G,) numbers of clusters.
    """
    leader = first_of_class.clone()
    for i in range(1, points.shape[1]):
        distance = torch.linalg.vector_norm(points[:, :i] - points[:, i : i + 1], dim=-1)
        near = distance <= torch.maximum(tau[:, :i], tau[:, i : i + 1])
        leader[:, i] &= ~(near & leader[:, :i]).any(-1)
    return leader.sum(-1)
