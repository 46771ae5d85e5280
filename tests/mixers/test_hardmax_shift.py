"""What is special about the selective shift: ties, exactness, and its stand-in gradient."""

import numpy as np
import paper_reference as paper
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mixers


def one_head(rule="shift", lower=-0.5, upper=1.5, d_model=16, *, causal=False, **fields):
    config = {"kind": "hardmax_shift", "n_heads": 1, "rule": rule, **fields}
    mixer = mixers.build(config, d_model=d_model, max_seq_len=8, causal=causal).double()
    with torch.no_grad():
        mixer.score.zero_()
        mixer.score[0, 0] = 1.0
        mixer.direction.zero_()
        mixer.direction[0, 0] = 1.0
        mixer.lower.fill_(lower)
        if rule == "shift":
            mixer.upper.fill_(upper)
    return mixer


def tokens(*scores, d_model=16):
    x = torch.zeros(1, len(scores), d_model, dtype=torch.float64)
    x[0, :, 0] = torch.tensor(scores, dtype=torch.float64)
    return x


def test__shift__inside_window__moves_by_max_minus_min():
    moved = one_head()(tokens(0.0, 1.0, 5.0, -2.0))[0, :, 0]
    assert moved.tolist() == [7.0, 7.0, 0.0, 0.0]


def test__sign__above_and_below__gives_max_and_min():
    moved = one_head("sign", lower=0.5)(tokens(0.0, 1.0, 5.0, -2.0))[0, :, 0]
    assert moved.tolist() == [-2.0, 5.0, 5.0, -2.0]


@pytest.mark.parametrize("rule", ["shift", "sign"])
@pytest.mark.parametrize("at", ["lower", "upper"])
def test__tie__score_on_threshold__equals_hardmax_sharing(rule, at):
    scores = (-0.5, 1.5, 4.0, -3.0) if at == "lower" else (1.5, -0.5, 0.0, 2.0)
    x = tokens(*scores)
    mixer = one_head(rule)
    upper = mixer.upper.detach().numpy() if rule == "shift" else None
    wanted = paper.hardmax_shift(
        x[0].numpy().T,
        mixer.score.detach().numpy(),
        mixer.direction.detach().numpy(),
        mixer.lower.detach().numpy(),
        upper,
        np.ones(4, dtype=bool),
    )
    np.testing.assert_allclose(mixer(x)[0].detach().numpy().T, wanted, atol=1e-14)


LEVELS = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.5])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rule", ["shift", "sign"])
@given(data=st.data(), lower=LEVELS, upper=LEVELS)
@settings(max_examples=40, deadline=None)
def test__tie__scores_of_few_values__equal_hardmax_sharing_of_the_real_tokens(
    rule, causal, data, lower, upper
):
    # Few values: most examples tie at a threshold, for the maximum, or for the minimum.
    scores = data.draw(st.lists(LEVELS, min_size=1, max_size=8))
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    mixer = one_head(rule, lower, upper, causal=causal)
    x = tokens(*scores)
    got = mixer(x, torch.from_numpy(keep)[None])[0].detach().numpy().T
    weights = {name: value.detach().numpy() for name, value in mixer.state_dict().items()}
    for j in np.flatnonzero(keep):
        seen = keep & (np.arange(len(keep)) <= j) if causal else keep
        wanted = paper.hardmax_shift(
            x[0].numpy().T, weights["score"], weights["direction"], weights["lower"],
            weights.get("upper"), seen,
        )  # fmt: skip
        np.testing.assert_allclose(got[:, j], wanted[:, j], atol=1e-14)


def test__tie__padding__is_left_out_of_the_mean():
    mask = torch.tensor([[True, True, True, False]])
    moved = one_head("sign", lower=1.0)(tokens(1.0, 4.0, -2.0, 100.0), mask)[0, :, 0]
    assert moved[:3].tolist() == [1.0, 4.0, -2.0]


def test__surrogate__width__changes_no_output():
    x = torch.randn(2, 8, 16, dtype=torch.float64)
    assert torch.equal(one_head(surrogate_width=0.01)(x), one_head(surrogate_width=9.0)(x))


def test__surrogate__threshold_gradient__is_that_of_the_sigmoid_window():
    mixer = one_head(surrogate_width=0.5)
    scores = (0.0, 1.0, 5.0, -2.0)
    mixer(tokens(*scores))[0, :, 0].sum().backward()
    sigmoid = torch.sigmoid((torch.tensor(scores, dtype=torch.float64) + 0.5) / 0.5)
    wanted = -7.0 * (sigmoid * (1 - sigmoid) / 0.5).sum()
    torch.testing.assert_close(mixer.lower.grad[0], wanted)


def test__extremes__gradient__goes_to_the_tokens_that_hold_them():
    mixer = one_head(surrogate_width=1e-3)  # narrow: the stand-in vanishes away from thresholds
    x = tokens(0.0, 1.0, 5.0, -2.0).requires_grad_()
    mixer(x)[0, :, 0].sum().backward()
    assert x.grad[0, :, 0].tolist() == pytest.approx([0.0, 0.0, 2.0, -2.0])


def test__start__normal_tokens__about_half_are_inside_every_window():
    torch.manual_seed(0)
    mixer = mixers.build("hardmax_shift", d_model=64, max_seq_len=8)
    scores = torch.randn(20_000, 1)
    inside = ((scores > mixer.lower) & (scores < mixer.upper)).float().mean(0)
    # Standard error of a share of 20,000 draws is 0.0035; five of them.
    assert (inside - 0.5).abs().max() < 0.0175
