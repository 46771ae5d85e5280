"""The sweep against brute force over all pairs."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from search.probe.clusters import cluster, count_clusters, distinctness


def components(points: np.ndarray, tau: np.ndarray) -> list[int]:
    """Connected components of "not separated", by comparing all pairs."""
    label = list(range(len(points)))
    for i, k in itertools.combinations(range(len(points)), 2):
        if np.sqrt(((points[i] - points[k]) ** 2).sum()) <= max(tau[i], tau[k]):
            low, high = sorted((label[i], label[k]))
            label = [low if value == high else value for value in label]
    return label


def as_partition(labels) -> set[frozenset[int]]:
    members: dict[int, set[int]] = {}
    for item, label in enumerate(labels):
        members.setdefault(int(label), set()).add(item)
    return {frozenset(group) for group in members.values()}


@st.composite
def lattice_points(draw):
    """Points that are either within a thousandth of each other or at least 0.9 apart."""
    d = draw(st.integers(1, 3))
    m = draw(st.integers(1, 30))
    centres = draw(
        st.lists(st.lists(st.integers(0, 2), min_size=d, max_size=d), min_size=m, max_size=m)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    jitter = rng.uniform(-1, 1, (m, d)) * 2e-4 * draw(st.sampled_from([0, 1]))
    return np.array(centres, dtype=float) + jitter, rng.uniform(2e-3, 0.2, m)


@given(lattice_points(), st.integers(0, 100))
def test__cluster__well_separated_points__equals_brute_force(case, seed):
    points, tau = case

    assert as_partition(cluster(points, tau, seed=seed)) == as_partition(components(points, tau))


@given(st.integers(0, 2**31), st.integers(1, 60), st.floats(0, 2))
def test__cluster__any_points__each_cluster_lies_around_one_of_its_own(seed, m, size):
    rng = np.random.default_rng(seed)
    points, tau = rng.standard_normal((m, 2)), size * rng.random(m)

    found = as_partition(cluster(points, tau))

    connected = as_partition(components(points, tau))
    for group in found:
        assert any(group <= larger for larger in connected)
        assert any(
            all(np.linalg.norm(points[i] - points[k]) <= max(tau[i], tau[k]) for k in group)
            for i in group
        )


def test__cluster__no_tolerance__only_equal_rows_share_and_the_sign_of_zero_does_not_count():
    points = np.array([[0.0, 1.0], [-0.0, 1.0], [1e-100, 1.0], [2.0, 2.0], [2.0, 2.0]])

    labels = cluster(points, np.zeros(5))

    assert as_partition(labels) == {frozenset({0, 1}), frozenset({2}), frozenset({3, 4})}


def test__cluster__equal_rows__the_larger_tolerance_counts():
    points = np.array([[0.0], [0.0], [0.5]])

    assert len(as_partition(cluster(points, np.array([0.0, 0.6, 0.0])))) == 1
    assert len(as_partition(cluster(points, np.array([0.0, 0.4, 0.0])))) == 2


def test__cluster__many_points_near_in_projection__are_not_merged():
    """One projection alone would merge about P^2 tau / range = 4,000 of these pairs."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((2000, 16))

    assert len(as_partition(cluster(points, np.full(2000, 5e-3)))) == 2000


def test__cluster__nothing__gives_nothing():
    assert cluster(np.zeros((0, 3)), np.zeros(0)).shape == (0,)


@given(lattice_points(), st.data())
def test__count_clusters__groups__equals_brute_force_over_the_items_that_take_part(case, data):
    points, tau = case
    takes_part = data.draw(st.lists(st.booleans(), min_size=len(points), max_size=len(points)))
    chosen = np.flatnonzero(takes_part)

    counted = count_clusters(
        torch.from_numpy(points)[None], torch.from_numpy(tau)[None], torch.tensor([takes_part])
    )

    assert int(counted[0]) == len(set(components(points[chosen], tau[chosen])))


@given(lattice_points(), st.data())
def test__distinctness__random_keys__equals_brute_force(case, data):
    points, tau = case
    m = len(points)
    keys = np.array(data.draw(st.lists(st.integers(0, 3), min_size=m, max_size=m)))

    found = distinctness(points, keys, np.arange(m), tau)

    label = components(points, tau)
    pairs = list(itertools.combinations(range(m), 2))
    within = [(i, k) for i, k in pairs if keys[i] == keys[k]]
    groups = [np.flatnonzero(keys == key) for key in set(keys.tolist())]
    spare = sum(len(group) - 1 for group in groups)
    if spare:
        told = sum(len(set(components(points[g], tau[g]))) - 1 for g in groups)
        assert found.d_ctx == pytest.approx(told / spare)
        merged = sum(label[i] == label[k] for i, k in within)
        assert found.s_ctx == pytest.approx(1 - merged / len(within))
    else:
        assert found.d_ctx is None
        assert found.s_ctx is None
    across = [(i, k) for i, k in pairs if keys[i] != keys[k]]
    assert found.cross_key_merged == sum(label[i] == label[k] for i, k in across)
    if m > 1:
        assert found.d_all == pytest.approx((len(set(label)) - 1) / (m - 1))
    else:
        assert found.d_all is None


def test__distinctness__items_of_one_class__count_once_and_must_be_equal():
    outputs = np.array([[0.0], [1.0], [1.0], [1.5]])
    keys = np.zeros(4, dtype=int)
    classes = np.array([0, 1, 1, 1])

    found = distinctness(outputs, keys, classes, np.full(4, 0.1))

    assert (found.d_ctx, found.d_all) == (1.0, 1.0)
    assert found.split_classes == 1


def test__distinctness__all_outputs_equal__reads_zero():
    found = distinctness(np.ones((6, 2)), np.repeat([0, 1], 3), np.arange(6), np.zeros(6))

    assert (found.d_ctx, found.s_ctx, found.d_all) == (0.0, 0.0, 0.0)
    assert found.cross_key_merged == 9
