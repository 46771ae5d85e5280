"""Weights of a compiled encoder load into a plain one, and the other way round."""

import pytest
import torch
from safetensors.torch import load_file

import mixers
from mixers.folder import save

ARCHITECTURE = "attention, sepconv"
pytestmark = pytest.mark.filterwarnings("ignore")  # the compiler's own
CLOSE = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(scope="module", autouse=True)
def forget_what_was_compiled():
    yield
    torch.compiler.reset()


def fresh(seed=0):
    spec = mixers.EncoderSpec.of(ARCHITECTURE, d_ff=16, d_model=16, max_seq_len=8, vocab_size=10)
    torch.manual_seed(seed)
    return mixers.Encoder(spec)


def wrapped(encoder):
    return torch.compile(encoder, backend="aot_eager")


def compiled_in_place(encoder):
    encoder.compile(backend="aot_eager")
    return encoder


def trained(encoder):
    """The encoder after one step, as training would leave it."""
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-2)
    encoder(torch.arange(8)[None]).square().mean().backward()
    optimizer.step()
    return encoder


@pytest.mark.parametrize("compiled", [wrapped, compiled_in_place])
def test__C34__compiled_encoder__is_saved_under_plain_names_and_loads_uncompiled(
    compiled, tmp_path
):
    encoder = trained(compiled(fresh()))
    save(encoder, tmp_path)
    assert set(load_file(tmp_path / "model.safetensors")) == set(fresh().state_dict())
    again = mixers.load(tmp_path)
    ids = torch.arange(8).flip(0)[None]
    torch.testing.assert_close(again(ids), encoder(ids), **CLOSE)


def test__C34__plain_weights__load_into_a_compiled_encoder(tmp_path):
    encoder = trained(fresh())
    save(encoder, tmp_path)
    other = compiled_in_place(fresh(seed=1))
    other.load_state_dict(mixers.load(tmp_path).state_dict())
    ids = torch.arange(8).flip(0)[None]
    torch.testing.assert_close(other(ids), encoder(ids), **CLOSE)
