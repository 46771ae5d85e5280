import numpy as np
import pytest

from search.answers.shrinkage import posterior_means


def test__posterior_means__many_equals__drawn_to_their_mean():
    readings = np.random.default_rng(0).normal(3.0, 0.1, 60)
    means = posterior_means(readings.tolist(), [0.1] * 60)
    assert np.ptp(means) < 0.3 * np.ptp(readings)


def test__posterior_means__stands_alone__is_hardly_moved():
    readings = [3.0, 3.01, 2.99, 3.02, 2.98, 2.0]
    assert posterior_means(readings, [0.02] * 6)[-1] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0])
def test__posterior_means__the_best_of_many__is_less_biased_than_its_reading(spread):
    # Two clumps of true values, as cheap and dear stacks are; the best reading is chosen.
    generator = np.random.default_rng(1)
    raw, shrunken = [], []
    for _ in range(150):
        true = np.where(generator.random(30) < 0.5, 0.0, 20.0) + generator.normal(0, spread, 30)
        readings = true + generator.normal(0, 1, 30)
        best = int(np.argmin(readings))
        raw.append(readings[best] - true[best])
        shrunken.append(posterior_means(readings.tolist(), [1.0] * 30)[best] - true[best])
    assert abs(np.mean(shrunken)) < 0.6 * abs(np.mean(raw))


def test__posterior_means__a_surer_reading__is_drawn_less():
    readings = [3.0, 3.01, 2.99, 3.02, 2.98, 3.1, 3.1]
    *_, unsure, sure = posterior_means(readings, [0.05] * 6 + [0.01])
    assert unsure < sure == pytest.approx(3.1, abs=1e-3)
