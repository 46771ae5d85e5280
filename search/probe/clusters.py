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


def cluster(points: Floats, tau: Floats, *, seed: int = 0) -> Ints:
    """Labels of the leader clusters of M points, O(M d + M log M) when few points are close.

    Bitwise equal rows are taken together first (-0.0 equals 0.0; the largest tau counts). The rest
    is projected on two random unit vectors u, sorted by the first projection and swept with the
    leaders whose first projection is near; since |u.x - u.y| <= ||x - y||, only pairs that both
    projections leave open need the full distance.

    Args:
        points: (M, D).
        tau: (M,), thresholds.
        seed: of the two directions.

    Returns:
        (M,) labels; equal label = same cluster.
    """
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    rows, tau, inverse = _merge_equal(points, tau)
    directions = np.random.default_rng(seed).standard_normal((2, rows.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    first, second = directions @ rows.T
    order = np.argsort(first, kind="stable")
    labels = np.empty(len(rows), dtype=np.int64)
    labels[order] = _sweep(rows[order], tau[order], first[order], second[order])
    return labels[inverse]


def _merge_equal(points: Floats, tau: Floats) -> tuple[Floats, Floats, Ints]:
    """Distinct rows, the largest tau of each, and the distinct row of every point."""
    rows = np.ascontiguousarray(points + 0.0)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    largest = np.zeros(len(index))
    np.maximum.at(largest, inverse, tau)
    return rows[index], largest, inverse.astype(np.int64)


def _sweep(rows: Floats, tau: Floats, first: Floats, second: Floats) -> Ints:
    """Label, for rows sorted by ``first``, as the position of each row's leader."""
    window = WINDOW * float(tau.max())
    has_neighbour = np.zeros(len(rows), dtype=bool)
    close = np.diff(first) <= window
    has_neighbour[1:] |= close
    has_neighbour[:-1] |= close
    labels = np.arange(len(rows), dtype=np.int64)
    leaders = np.empty(len(rows), dtype=np.int64)
    start = end = 0
    for i in np.flatnonzero(has_neighbour):
        while start < end and first[leaders[start]] < first[i] - window:
            start += 1
        near = leaders[start:end]
        limit = np.maximum(tau[near], tau[i])
        near = near[
            (np.abs(first[near] - first[i]) <= limit) & (np.abs(second[near] - second[i]) <= limit)
        ]
        gap = np.linalg.norm(rows[near] - rows[i], axis=1)
        joined = near[gap <= np.maximum(tau[near], tau[i])]
        if len(joined):
            labels[i] = joined[0]
        else:
            leaders[end] = i
            end += 1
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
    n_classes = n_clusters = required = merged = 0
    grouped = np.argsort(keys, kind="stable")
    for group in np.split(grouped, np.flatnonzero(np.diff(keys[grouped])) + 1):
        if len(group) >= 2:
            sizes = np.unique(cluster(outputs[group], tau[group], seed=seed), return_counts=True)[1]
            n_classes += len(group) - 1
            n_clusters += len(sizes) - 1
            required += len(group) * (len(group) - 1) // 2
            merged += _pairs_within(sizes)
    labels = cluster(outputs, tau, seed=seed)
    overall = np.unique(labels, return_counts=True)[1]
    together = np.unique(np.stack([labels, keys]), axis=1, return_counts=True)[1]
    m = len(outputs)
    return Distinctness(
        d_ctx=n_clusters / n_classes if n_classes else None,
        s_ctx=1 - merged / required if required else None,
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
