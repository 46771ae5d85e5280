import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.answers.family import ALPHA, Family, adjusted, alpha_of_look, holm

FAMILY = Family(layer_contrasts=16)
P_VALUES = st.lists(st.none() | st.floats(0, 1), max_size=3)


def test__alpha_of_look__all_looks__spend_five_per_cent():
    spent = [alpha_of_look(look) for look in range(1, 40)]
    assert spent[:3] == pytest.approx([0.04, 0.008, 0.0016])
    assert sum(spent) == pytest.approx(ALPHA)
    with pytest.raises(ValueError, match="the first is 1"):
        alpha_of_look(0)


def test__holm__worked_by_hand__steps_down_and_stops():
    assert holm([0.03, 0.001, 0.019], FAMILY) == pytest.approx([0.96, 1 - 0.04 / 3, 0.98])
    assert holm([0.03, 0.001, 0.021], FAMILY) == pytest.approx([0.98, 1 - 0.04 / 3, 0.98])
    assert holm([0.03, 0.02, 0.021], FAMILY) == pytest.approx([1 - 0.04 / 3] * 3)


def test__holm__one_contrast_was_tested__the_family_keeps_its_size():
    assert holm([0.9], FAMILY) == pytest.approx([1 - 0.04 / 3])
    assert holm([None, 0.001, None], FAMILY) == pytest.approx([0.98, 1 - 0.04 / 3, 0.98])


@given(P_VALUES, st.integers(1, 4))
def test__holm__any_p_values__as_the_step_down_procedure_decides(p_values, look):
    family = Family(layer_contrasts=1, look=look)
    levels = holm(p_values, family)
    rejected = 0
    for p_value in sorted(p for p in p_values if p is not None):
        if p_value > family.alpha / (3 - rejected):
            break
        rejected += 1
    said = [
        p for p, level in zip(p_values, levels, strict=True) if p is not None and p <= 1 - level
    ]
    assert len(said) == rejected


def test__holm__three_true_hypotheses__any_is_rejected_as_seldom_as_stated():
    draws = np.random.default_rng(0).random((4000, 3))
    rejected = np.mean([np.any(p <= 1 - np.array(holm(list(p), FAMILY))) for p in draws])
    assert rejected == pytest.approx(0.04, abs=3 * (0.04 * 0.96 / 4000) ** 0.5)


@pytest.mark.parametrize("level", [0.96, 0.98, 1 - 0.008 / 3])
def test__adjusted__on_the_border_of_the_interval__is_five_per_cent(level):
    assert adjusted(1 - level, level) == pytest.approx(0.05)
    assert adjusted(0.9, level) == 1.0


def test__layer_level__bonferroni_over_all_cells_of_the_space():
    assert Family(layer_contrasts=16).layer_level == pytest.approx(1 - 0.01 / 16)
    assert Family(layer_contrasts=16, look=2).layer_level == pytest.approx(1 - 0.002 / 16)
