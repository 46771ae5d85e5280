import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.answers.family import ALPHA, Family, alpha_of_look, holm

FAMILY = Family(layer_contrasts=16)
P_VALUES = st.lists(st.none() | st.floats(0, 1), max_size=3)


def test__alpha_of_look__all_looks__spend_five_per_cent():
    spent = [alpha_of_look(look) for look in range(1, 40)]
    assert spent[:3] == pytest.approx([0.04, 0.008, 0.0016])
    assert sum(spent) == pytest.approx(ALPHA)
    with pytest.raises(ValueError, match="the first is 1"):
        alpha_of_look(0)


def test__holm__worked_by_hand__steps_down_and_stops():
    steps = holm([0.03, 0.001, 0.019], FAMILY)
    assert [step.is_decided for step in steps] == [True, True, True]
    assert [step.level for step in steps] == pytest.approx([0.96, 1 - 0.04 / 3, 0.98])
    # 0.001 x 3, 0.019 x 2, 0.03 x 1 never below the one before; each x 0.05 / 0.04
    assert [step.p_value for step in steps] == pytest.approx([0.0475, 0.00375, 0.0475])
    stopped = holm([0.03, 0.001, 0.021], FAMILY)
    assert [step.is_decided for step in stopped] == [False, True, False]
    assert [step.level for step in stopped] == pytest.approx([0.98, 1 - 0.04 / 3, 0.98])


def test__holm__one_contrast_was_tested__the_family_keeps_its_size():
    steps = holm([0.014, None, None], FAMILY)
    assert not any(step.is_decided for step in steps)
    assert holm([0.013, None, None], FAMILY)[0].is_decided
    assert steps[1].p_value is None


@given(P_VALUES, st.integers(1, 4))
def test__holm__any_p_values__decided_exactly_where_the_adjusted_one_is_small(p_values, look):
    family = Family(layer_contrasts=1, look=look)
    for p_value, step in zip(p_values, holm(p_values, family), strict=True):
        assert step.level <= 1 - family.alpha / 3 + 1e-12
        if p_value is None:
            assert not step.is_decided
        elif step.p_value != pytest.approx(ALPHA, rel=1e-9):
            assert step.is_decided == (step.p_value <= ALPHA)
            assert step.is_decided == (p_value <= 1 - step.level)


def test__holm__three_true_hypotheses__any_is_rejected_as_seldom_as_stated():
    draws = np.random.default_rng(0).random((4000, 3))
    rejected = np.mean([any(step.is_decided for step in holm(list(p), FAMILY)) for p in draws])
    assert rejected == pytest.approx(0.04, abs=3 * (0.04 * 0.96 / 4000) ** 0.5)


def test__layer_level__bonferroni_over_all_cells_of_the_space():
    assert Family(layer_contrasts=16).layer_level == pytest.approx(1 - 0.04 / 16)
    assert Family(layer_contrasts=16, look=2).layer_level == pytest.approx(1 - 0.008 / 16)
