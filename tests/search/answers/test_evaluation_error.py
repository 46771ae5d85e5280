import numpy as np
import pytest

from search.answers.evaluation_error import evaluation_error
from search.answers.intervals import Part, difference
from search.rows import DocumentSums

GROUPS = 24


def runs(generator, n_runs, sizes, by_document, *, seed_sd=0.0, within_sd=0.0, mean=3.0):
    """Runs of one architecture: documents have their own means, seeds and cells are noise."""
    found = {}
    for seed in range(n_runs):
        values = mean + by_document + seed_sd * generator.standard_normal()
        values = values + within_sd * generator.standard_normal(len(sizes))
        found[seed] = DocumentSums(tuple(sizes), tuple((values * sizes).tolist()))
    return found


def mean_of(run):
    return sum(run.sums) / sum(run.n)


def test__evaluation_error__no_noise_of_seeds__is_the_bootstrap_by_document():
    generator = np.random.default_rng(0)
    sizes = generator.integers(50, 400, GROUPS)
    hard = generator.normal(0, 1.0, GROUPS)
    left = runs(generator, 2, sizes, hard + generator.normal(0, 0.05, GROUPS))
    right = runs(generator, 2, sizes, hard)
    found = evaluation_error(left, right)
    picks = generator.integers(0, GROUPS, (4000, GROUPS))
    gaps = np.subtract(left[0].sums, right[0].sums)
    resampled = gaps[picks].sum(1) / sizes[picks].sum(1)
    correction = (GROUPS / (GROUPS - 1)) ** 0.5
    assert found.sd == pytest.approx(resampled.std() * correction, rel=0.06)
    assert found.n_groups == GROUPS
    # What is hard for both cancels: the documents' own spread is twenty times larger.
    assert found.sd < 0.05 * 1.0


def test__evaluation_error__equal_architectures__only_noise_within_documents__about_none():
    generator = np.random.default_rng(1)
    sizes = np.full(GROUPS, 100)
    hard = generator.normal(0, 1.0, GROUPS)
    found = [
        evaluation_error(
            runs(generator, 3, sizes, hard, within_sd=0.1),
            runs(generator, 3, sizes, hard, within_sd=0.1),
        ).variance
        for _ in range(200)
    ]
    already_counted = 2 * 0.1**2 / 3 / GROUPS
    assert np.mean(found) < 0.25 * already_counted


@pytest.mark.parametrize("gap_sd", [0.0, 0.02, 0.1])
def test__difference__seeds_and_documents_drawn_anew__covers_as_it_says(gap_sd):
    generator = np.random.default_rng(2)
    sizes = generator.integers(50, 200, GROUPS)
    covered = []
    for _ in range(800):
        hard = generator.normal(0, 0.5, GROUPS)
        gaps = generator.normal(0, gap_sd, GROUPS)
        sides = [
            runs(generator, 4, sizes, hard + gaps, seed_sd=0.01, within_sd=0.02, mean=2.9),
            runs(generator, 4, sizes, hard, seed_sd=0.02, within_sd=0.03),
        ]
        error = evaluation_error(*sides)
        values = ([mean_of(run) for run in side.values()] for side in sides)
        interval = difference(*values, Part(error.variance, error.df)).interval(0.95)
        covered.append(interval.low <= -0.1 <= interval.high)
    assert 0.925 < np.mean(covered) < 0.975


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([(1, 1, 1, 1)], [(1, 1, 1, 1)] * 2),
        ([(1, 1, 1, 1)] * 2, [(1, 1, 1, 2)] * 2),
        ([(1, 1, 1)] * 2, [(1, 1, 1)] * 2),
        ([(2, 2, 0, 0)] * 2, [(2, 2, 0, 0)] * 2),
    ],
    ids=["one run", "other groups", "three groups", "two groups with targets"],
)
def test__evaluation_error__cannot_be_estimated__none(left, right):
    sides = [
        {seed: DocumentSums(n, tuple(map(float, n))) for seed, n in enumerate(side)}
        for side in (left, right)
    ]
    assert evaluation_error(*sides) is None
