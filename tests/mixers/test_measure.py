"""The card of a mixer, against values that follow from its formula."""

import pytest
import torch

import mixers
from mixers.measure import (
    Card,
    Sizes,
    influence_strength,
    measure,
    rounding_errors,
    sizes_at_start,
    times,
)


@pytest.fixture(scope="module")
def card():
    return measure("average", d_model=64, seq_len=32)


def test__measure__average__sizes_follow_from_the_formula(card):
    # The mean of 32 normal tokens has variance 1/32; W has entries of variance 1/4 over 64.
    assert card.sizes.update == pytest.approx(0.5 * 32**-0.5, rel=0.1)
    assert card.sizes.gradient == pytest.approx(0.5 * 32**-0.5, rel=0.1)
    assert card.parameters == 64 * 64 + 64
    assert card.flops == 2 * 32 * 64**2
    assert card.attention_flops == 8 * 32 * 64**2 + 4 * 32**2 * 64
    assert card.holds
    assert set(card.holds.values()) == {None}


def test__measure__average__every_token_moves_every_output_alike(card):
    strength = torch.tensor(card.influence)
    assert strength.shape == (32, 32)
    assert torch.allclose(strength, strength[0, 0].expand(32, 32))
    # d out / d x = W / n in every pair.
    assert strength.mean().item() == pytest.approx(0.5 / 32, rel=0.2)  # four directions only


def test__measure__fourier__keeps_half_of_the_energy():
    # The real part of a unitary transform of real numbers.
    sizes = sizes_at_start(mixers.build("fourier", d_model=64, max_seq_len=32).config, 64, 32)
    assert sizes.update == pytest.approx(0.5**0.5, rel=0.02)


@pytest.mark.parametrize(("ratio", "words"), [(3.71, "3.7"), (0.021, "0.021"), (108.96, "109")])
def test__times__two_digits_and_no_exponent(ratio, words):
    assert times(ratio) == words


def test__measure__false_claim__stands_in_the_card(monkeypatch):
    from mixers.builtin.average import AverageAttention

    honest = AverageAttention.traits
    monkeypatch.setattr(
        AverageAttention,
        "traits",
        classmethod(lambda _, config: honest(config).model_copy(update={"linear": False})),
    )
    holds = measure("average", d_model=16, seq_len=8).holds
    assert [name for name, reason in holds.items() if reason] == ["linear"]
    assert "claim: linear=False" in holds["linear"]


def test__rounding_errors__formats__are_of_their_own_size():
    errors = rounding_errors(mixers.build("sepconv", d_model=16, max_seq_len=16).config, 16, 16)
    assert 1e-9 < errors["float32"] < 1e-5  # 24 bits
    assert 1e-4 < errors["bfloat16"] < 0.05  # 8 bits


def test__influence_strength__window__ends_where_the_reach_does():
    config = mixers.build({"kind": "sepconv", "kernel_size": 5}, d_model=16, max_seq_len=12).config
    strength = torch.tensor(influence_strength(config, 16, 12))
    places = torch.arange(12)
    near = (places[:, None] - places).abs() <= 2
    assert (strength[near] > 0).all()
    assert (strength[~near] == 0).all()


@pytest.mark.parametrize(
    ("update", "gradient", "named"),
    [
        (1.0, 1.0, []),
        (3.1, 0.34, ["update"]),
        (0.3, 4.0, ["update", "gradient"]),
        (0.0, 0.0, []),
    ],
)
def test__card__ratio_out_of_a_third_to_three__is_a_warning(update, gradient, named):
    card = Card(
        kind="local.any", d_model=1, seq_len=1, holds={}, parameters=0, flops=0,
        attention_flops=1, errors={}, sizes=Sizes(2 * update, 5 * gradient),
        attention=Sizes(2.0, 5.0), influence=((1.0,),),
    )  # fmt: skip
    assert [line.split()[0] for line in card.warnings] == named
