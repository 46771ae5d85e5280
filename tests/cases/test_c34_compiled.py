"""What was trained compiled goes on uncompiled, and the other way round."""

import pytest
import torch
from safetensors.torch import load_file

import mixers
from mixers.folder import save

pytestmark = pytest.mark.filterwarnings("ignore")  # the compiler's own
CLOSE = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(scope="module", autouse=True)
def forget_what_was_compiled():
    yield
    torch.compiler.reset()


def plain(seed=0):
    spec = mixers.EncoderSpec.of(
        "attention, sepconv", d_ff=16, d_model=16, max_seq_len=8, vocab_size=10
    )
    torch.manual_seed(seed)
    return mixers.Encoder(spec)


def wrapped(seed=0):
    return torch.compile(plain(seed), backend="aot_eager")


def in_place(seed=0):
    encoder = plain(seed)
    encoder.compile(backend="aot_eager")
    return encoder


def step(encoder, optimizer, ids):
    encoder(ids).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def optimizer_of(encoder):
    return torch.optim.AdamW(encoder.parameters(), lr=1e-2)


@pytest.mark.parametrize(("before", "after"), [(in_place, plain), (plain, in_place)])
def test__C34__training__goes_on_with_the_other_setting_as_if_nothing_had_changed(before, after):
    ids = torch.arange(8)[None]
    whole = plain()
    optimizer = optimizer_of(whole)
    for _ in range(4):
        step(whole, optimizer, ids)

    first = before()
    optimizer = optimizer_of(first)
    for _ in range(2):
        step(first, optimizer, ids)
    second = after(seed=1)
    second.load_state_dict(first.state_dict())
    again = optimizer_of(second)
    again.load_state_dict(optimizer.state_dict())
    for _ in range(2):
        step(second, again, ids)
    torch.testing.assert_close(second(ids.flip(1)), whole(ids.flip(1)), **CLOSE)


@pytest.mark.parametrize("compiled", [wrapped, in_place])
def test__C34__compiled_encoder__is_saved_under_plain_names_and_loads_uncompiled(
    compiled, tmp_path
):
    encoder = compiled()
    save(encoder, tmp_path)
    assert set(load_file(tmp_path / "model.safetensors")) == set(plain().state_dict())
    ids = torch.arange(8).flip(0)[None]
    torch.testing.assert_close(mixers.load(tmp_path)(ids), encoder(ids), **CLOSE)
