"""Mixers under autocast, as mixed-precision training runs them, and on a GPU where there is one."""

import pytest
import torch

import mixers
from mixers.reference import built_in

KINDS = [*built_in(), "sparse_attention(pattern=star)", "attention(rotary=true)"]


def case(notation, n):
    (config,) = mixers.parse_architecture(notation)
    torch.manual_seed(0)
    mixer = mixers.build(config, d_model=32, max_seq_len=n)
    return mixer, torch.randn(2, n, 32), torch.arange(n) < torch.tensor([[n], [n // 2]])


@pytest.mark.parametrize("n", [12, 100])
@pytest.mark.parametrize("notation", KINDS)
def test__built_in__under_autocast__is_close_and_its_gradients_finite(notation, n):
    mixer, x, mask = case(notation, n)
    x.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        got = mixer(x, mask)
    wanted = mixer(x, mask)
    largest = wanted[mask].detach().abs().max()
    # bfloat16 keeps 8 bits. A score that rounds across a threshold of hardmax_shift moves a token
    # by a whole step, so there only the mean is close.
    difference = (got - wanted)[mask].detach().abs()
    if mixer.config.kind == "hardmax_shift":
        assert difference.mean() <= 0.02 * largest
    else:
        assert difference.max() <= 0.02 * largest
    if got.requires_grad:
        got[mask].float().square().sum().backward()
        for tensor in (x, *mixer.parameters()):
            assert torch.isfinite(tensor.grad).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [12, 100])
@pytest.mark.parametrize("notation", KINDS)
def test__built_in__on_a_gpu__equals_the_cpu(notation, n, dtype):
    mixer, x, mask = case(notation, n)
    wanted = mixer.double()(x.double(), mask)
    got = mixer.to("cuda", dtype)(x.to("cuda", dtype), mask.cuda())
    assert torch.isfinite(got).all()
    if dtype == torch.float64:
        torch.testing.assert_close(got.cpu()[mask], wanted[mask], atol=1e-11, rtol=0)
    elif mixer.config.kind != "hardmax_shift":
        largest = wanted[mask].abs().max()
        assert (got.cpu().double() - wanted)[mask].abs().max() <= 0.03 * largest
