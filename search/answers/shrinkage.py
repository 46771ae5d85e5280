"""How much of the pick's lead was luck of the choice: what to expect, and what the test split says.

The best of many noisy readings is read too well. Its expected true value is the posterior mean
under the distribution of true values that makes all readings of the study most likely (Kiefer and
Wolfowitz 1956; nonparametric empirical Bayes), so a pick that stands alone is hardly shrunken and
one among many near equals is drawn to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from search.answers.arms import Arm, Finalists
from search.answers.question import Question

ITERATIONS = 200
MIN_ARMS = 5


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """How much of the candidate's lead over attention was luck of the choice.

    Attributes:
        candidate: its code.
        selection: its lead where it was chosen (positive: ahead).
        test: its lead with fresh seeds on the test split.
        lost: ``selection - test``.
        expected: the lead that the readings where it was chosen let one expect; None where the
            noise is not measured or fewer than five architectures were read.
    """

    candidate: str
    selection: float
    test: float
    lost: float
    expected: float | None = None


def shrinkage_of(
    arms: Sequence[Arm], finalists: Finalists, noise_sd: float | None, question: Question
) -> Shrinkage | None:
    """Compares the candidate's lead where it was chosen with its lead on test.

    Args:
        arms: the study's architectures.
        finalists: the finalists among them.
        noise_sd: SD of one run; None where not measured.
        question: the study's facts.
    """
    candidate, reference = finalists.candidate, finalists.reference
    if candidate is None or reference is None or candidate.arch_id == reference.arch_id:
        return None
    selection = _lead(candidate.selection_mean, reference.selection_mean, question)
    test = _lead(candidate.test_mean, reference.test_mean, question)
    if selection is None or test is None:
        return None
    read = [arm for arm in arms if arm.n_layers == question.n_layers and arm.selection]
    expected = None
    if noise_sd and len(read) >= MIN_ARMS:
        means = posterior_means(
            [fmean(arm.selection.values()) for arm in read],
            [noise_sd / math.sqrt(len(arm.selection)) for arm in read],
        )
        shrunken = dict(zip((arm.arch_id for arm in read), means, strict=True))
        expected = _lead(shrunken.get(candidate.arch_id), shrunken.get(reference.arch_id), question)
    return Shrinkage(candidate.code, selection, test, selection - test, expected)


def posterior_means(readings: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Expected true value of each reading under the most likely distribution of true values.

    The distribution sits on the readings themselves and is fitted by expectation maximisation.

    Args:
        readings: one noisy value per architecture.
        errors: standard error of each, above 0.
    """
    values = np.asarray(readings, dtype=np.float64)
    distance = (values[:, None] - values[None]) / np.asarray(errors, dtype=np.float64)[:, None]
    likelihood = np.exp(-0.5 * distance**2)
    weights = np.full(len(values), 1.0 / len(values))
    for _ in range(ITERATIONS):
        weights = _posterior(likelihood, weights).mean(0)
    means: list[float] = (_posterior(likelihood, weights) @ values).tolist()
    return means


def _posterior(
    likelihood: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    joint = likelihood * weights
    result: NDArray[np.float64] = joint / joint.sum(1, keepdims=True)
    return result


def _lead(ours: float | None, theirs: float | None, question: Question) -> float | None:
    return None if ours is None or theirs is None else question.sign * (theirs - ours)
