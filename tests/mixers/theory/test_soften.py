"""Lemma 9: four ReLUs for an activation, softmax for hardmax."""

import pytest
import torch

from mixers.activation import PiecewiseLinear
from mixers.model import PiecewiseActivation
from mixers.theory.cubes import uniform
from mixers.theory.network import build
from mixers.theory.sizes import Sizes, TheoryError
from mixers.theory.soften import four_relus, soften, softness, sufficient_inverse_temperature
from mixers.theory.targets import Scrambled
from mixers.theory.tokenwise import contexts

PIECES = {
    "first constant": ((-1.0, 2.0), (0.0, 3.0, -1.0), (2.0, -1.0, 5.0)),
    "second constant": ((-1.0, 2.0), (3.0, 0.0, -2.0), (1.0, -4.0, 0.5)),
    "third constant": ((-1.0, 2.0), (-2.0, 1.0, 0.0), (0.0, 7.0, 3.0)),
    "two pieces": ((0.5,), (-1.0, 0.0), (0.0, 2.0)),
    "one piece": ((), (0.0,), (4.0,)),
}


@pytest.mark.parametrize("name", PIECES)
def test__four_relus__outside_the_ramps__equal_the_activation(name):
    breaks, slopes, intercepts = PIECES[name]
    phi = PiecewiseLinear(breakpoints=breaks, slopes=slopes, intercepts=intercepts)
    eps = 0.25
    constant, relus = four_relus(phi, eps)
    t = torch.cat([torch.linspace(-6, 6, 481, dtype=torch.float64), torch.tensor(breaks).double()])
    for c in breaks:
        t = t[(t < c - eps) | (t >= c)]
    got = torch.full_like(t, constant) + sum(
        r.weight * (r.sign * (t - r.start)).relu() for r in relus
    )
    torch.testing.assert_close(got, PiecewiseActivation(phi)(t), atol=1e-12, rtol=0)
    assert len(relus) == 2 * len(breaks) <= 4


def test__four_relus__ramp_wider_than_the_middle_piece__is_refused():
    breaks, slopes, intercepts = PIECES["first constant"]
    phi = PiecewiseLinear(breakpoints=breaks, slopes=slopes, intercepts=intercepts)
    with pytest.raises(TheoryError, match="fit between the breakpoints"):
        four_relus(phi, 3.5)


@pytest.fixture(params=[2, 3])
def network(request):
    sizes = Sizes(2, 2, 2, request.param)
    return build(sizes, Scrambled(sizes))


def centres(sizes):
    return (torch.tensor(list(contexts(sizes)), dtype=torch.float64) + 0.5) / sizes.K


def test__soften__sufficient_temperature__ids_within_the_tolerance(network):
    enough = sufficient_inverse_temperature(network.sizes, 1e-3)
    x = centres(network.sizes)
    hot, cold = softness(network, x, x, [(enough, 2**-10), (enough / 16, 2**-10)])
    assert hot.ids <= 1e-3 < cold.ids
    assert (hot.off, cold.off > 0) == (0.0, True)


def test__soften__points_in_the_ramps__are_no_more_than_their_measure(network):
    enough = sufficient_inverse_temperature(network.sizes, 1e-3)
    x = uniform(network.sizes, points=1000, seed=0)
    for row in softness(network, x[:1], x, [(enough, 2**-4), (enough, 2**-6)]):
        measure = 2 * 2 * row.quantizer_eps
        assert row.off <= measure + 4 * (measure / len(x)) ** 0.5  # four standard errors


def test__soften__blocks__are_attention_of_head_size_1_and_4_relus(network):
    spec = soften(network, inverse_temperature=100.0).encoder.spec
    assert {(b.mixer.kind, b.d_ff, b.activation) for b in spec.blocks if b.d_ff} == {
        ("identity", 4, "relu")
    }
    attention = [b.mixer for b in spec.blocks if not b.d_ff]
    assert {(m.kind, spec.d_model // m.n_heads) for m in attention} == {("attention", 1)}


def test__soften__width_1__is_refused():
    sizes = Sizes(1, 2, 2)
    with pytest.raises(TheoryError, match="two heads of size 1, so d >= 2"):
        soften(build(sizes, Scrambled(sizes)), inverse_temperature=10.0)
