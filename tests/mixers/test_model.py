"""The encoder: residuals, norms, positions, segments, masks and costs."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import mixers
from mixers.spec import BlockSpec, EncoderSpec

SIZES = {"vocab_size": 40, "d_model": 16, "max_seq_len": 12}


def encoder(architecture="sepconv, attention", **fields):
    torch.manual_seed(0)
    return mixers.Encoder(EncoderSpec.of(architecture, **{**SIZES, "d_ff": 32, **fields})).eval()


def layer_norm(x, norm):
    mean = x.mean(-1, keepdim=True)
    spread = (x - mean).square().mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(spread + norm.eps) * norm.weight + norm.bias


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
@pytest.mark.parametrize("d_ff", [0, 32])
@pytest.mark.parametrize(("scale_embeddings", "scale"), [(True, 4.0), (False, 1.0)])
def test__encoder__each_norm__equals_the_written_out_sum(norm, d_ff, scale_embeddings, scale):
    model = encoder(norm=norm, d_ff=d_ff, embedding_norm=True, scale_embeddings=scale_embeddings)
    ids = torch.randint(40, (2, 7))
    x = scale * model.token_embedding.weight[ids] + model.position_embedding.weight[:7]
    x = layer_norm(x, model.embedding_norm)
    for block in model.blocks:
        if norm == "pre":
            x = x + block.mixer(layer_norm(x, block.mixer_norm))
            if d_ff:
                h = layer_norm(x, block.feed_forward_norm)
        else:
            x = x + block.mixer(x)
            h = x = layer_norm(x, block.mixer_norm) if norm == "post" else x
        if d_ff:
            ff = block.feed_forward
            h = h @ ff.wide.weight.T + ff.wide.bias
            h = 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))
            x = x + h @ ff.narrow.weight.T + ff.narrow.bias
            x = layer_norm(x, block.feed_forward_norm) if norm == "post" else x
    x = layer_norm(x, model.final_norm) if norm == "pre" else x
    torch.testing.assert_close(model(ids), x, atol=1e-5, rtol=1e-5)


def test__embeddings__in_place_of_ids__give_the_same():
    model = encoder(n_segments=2)
    ids, segments = torch.randint(40, (2, 7)), torch.randint(2, (2, 7))
    embedded = model.token_embedding(ids) * 16**0.5
    assert torch.equal(model(ids, None, segments), model(embedded, None, segments))


def test__segments__not_given__are_segment_0():
    model = encoder(n_segments=2)
    ids = torch.randint(40, (2, 7))
    zeros = torch.zeros_like(ids)
    torch.testing.assert_close(model(ids), model(ids, None, zeros))
    assert not torch.allclose(model(ids), model(ids, None, zeros + 1))


def test__sinusoidal_positions__equal_the_formula_of_vaswani():
    model = encoder(positions="sinusoidal")
    got = model.embed(torch.zeros(1, 20, 16))[0]  # longer than max_seq_len: they have no end
    for place in range(20):
        for i in range(8):
            angle = place / 10000 ** (2 * i / 16)
            assert got[place, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert got[place, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test__no_positions_and_equivariant_mixers__order_does_not_matter():
    model = encoder("attention, average, hardmax_shift", positions="none")
    ids = torch.randint(40, (1, 9))
    order = torch.randperm(9)
    torch.testing.assert_close(model(ids)[:, order], model(ids[:, order]), atol=1e-5, rtol=0)


def test__same_seed__same_weights_and_start_as_documented():
    first, second = encoder("attention*2", d_model=64), encoder("attention*2", d_model=64)
    for left, right in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(left, right)
    for module in first.modules():
        if isinstance(module, nn.Linear):
            wanted = 0.5 * module.in_features**-0.5
            # 64 x 64 weights and more: the standard error of the SD is about 1 %.
            assert module.weight.std().item() == pytest.approx(wanted, rel=0.06)
            assert not module.bias.any()
    assert first.token_embedding.weight.std().item() == pytest.approx(0.5 / 8, rel=0.06)
    # A tenth of a token's vector as it enters: 0.5 after the scaling by sqrt(64).
    assert first.position_embedding.weight.std().item() == pytest.approx(0.05, rel=0.1)
    plain = encoder("attention*2", d_model=64, scale_embeddings=False)
    assert plain.position_embedding.weight.std().item() == pytest.approx(0.05 / 8, rel=0.1)


@pytest.mark.parametrize("architecture", ["sepconv, attention(rotary=true), hardmax_shift, average",
                                          "bproj, identity"])  # fmt: skip
@given(length=st.integers(1, 12), extra=st.integers(0, 6), seed=st.integers(0, 999))
@settings(max_examples=15, deadline=None)
def test__padding__nan_under_it__changes_no_output_and_no_gradient(
    architecture, length, extra, seed
):
    model = encoder(architecture, max_seq_len=18)
    torch.manual_seed(seed)
    x = torch.randn(1, length, 16)
    padded = torch.cat([x, torch.full((1, extra, 16), float("nan"))], 1)
    mask = (torch.arange(length + extra) < length)[None]
    wanted = model(x)
    wanted.square().sum().backward()
    gradients = [p.grad.clone() if p.grad is not None else None for p in model.parameters()]
    model.zero_grad()
    got = model(padded, mask)[:, :length]
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=0)
    got.square().sum().backward()
    for left, parameter in zip(gradients, model.parameters(), strict=True):
        if left is not None:
            torch.testing.assert_close(parameter.grad, left, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", ["attention", "attention(rotary=true)", "average", "bproj",
                                  "hardmax_shift", "sepconv"])  # fmt: skip
def test__autocast__bfloat16__stays_near_float32_and_trains(kind):
    model = encoder(f"{kind}*2")
    ids = torch.randint(40, (2, 12))
    mask = torch.arange(12)[None] < torch.tensor([[12], [7]])
    wanted = model(ids, mask)
    with torch.autocast("cpu", torch.bfloat16):
        got = model(ids, mask)
    got.float().square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
    # bfloat16 has 8 bits, so a selection may fall on the other side for single tokens.
    assert (got - wanted)[mask].abs().mean() < 0.02


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: m(torch.zeros(1, 13, dtype=torch.long)), "end at max_seq_len 12, got 13"),
        (lambda m: m(torch.zeros(1, 4, 8)), r"embeddings \(B, N, 16\), got shape \(1, 4, 8\)"),
        (lambda m: m(torch.zeros(4, dtype=torch.long)), "must be ids"),
        (
            lambda m: m(torch.zeros(1, 4, dtype=torch.long), torch.ones(1, 4, dtype=torch.long)),
            "mask must be bool",
        ),
        (
            lambda m: m(torch.zeros(1, 4, dtype=torch.long), torch.ones(1, 5, dtype=torch.bool)),
            r"shape \(1, 4\)",
        ),
        (
            lambda m: m(torch.zeros(1, 4, dtype=torch.long), None, torch.zeros(1, 4).long()),
            "n_segments 0",
        ),
    ],
)
def test__bad_input__is_refused_by_name(call, text):
    with pytest.raises(mixers.MixerError, match=text):
        call(encoder())


def test__piecewise_activation__equals_its_pieces():
    block = {
        "mixer": "identity",
        "d_ff": 8,
        "activation": {
            "kind": "piecewise_linear",
            "breakpoints": [0.0, 0.5],
            "slopes": [0.0, -1.0, 0.0],
            "intercepts": [2.0, 0.0, 3.0],
        },
    }
    spec = EncoderSpec(blocks=[block], **SIZES)
    activation = mixers.Encoder(spec).blocks[0].feed_forward.activation
    x = torch.tensor([-1.0, -1e-7, 0.0, 0.25, 0.5, 9.0])
    assert activation(x).tolist() == [2.0, 2.0, 0.0, -0.25, 3.0, 3.0]


BERT = {
    "vocab_size": 30_522,
    "d_model": 768,
    "max_seq_len": 512,
    "d_ff": 3072,
    "norm": "post",
    "n_segments": 2,
    "scale_embeddings": False,
    "embedding_norm": True,
}
SHARED = 23_837_184 + 12 * (4_722_432 + 3_072)


@pytest.mark.parametrize(
    ("architecture", "per_layer"),
    [
        ("average", 590_592),
        ("sepconv(kernel_size=128, n_filters=16)", 1_773_824),
        ("attention(n_heads=12)", 2_362_368),
        ("bproj", 768 * 769 + 512 * 512),
        ("identity", 0),
        ("hardmax_shift(n_heads=10)", 10 * (768 + 768 + 2)),
    ],
)
def test__count_parameters__bert_base__equals_the_table(architecture, per_layer):
    spec = EncoderSpec.of(f"{architecture}*12", **BERT)
    assert mixers.count_parameters(spec) == SHARED + 12 * per_layer


def test__count_parameters__small_model__equals_the_real_one():
    model = encoder("sepconv, attention, bproj, hardmax_shift, average, identity", n_segments=3)
    assert mixers.count_parameters(model.spec) == sum(p.numel() for p in model.parameters())


def test__count_flops__by_hand():
    n, d, f = 12, 16, 32
    spec = EncoderSpec.of("attention, bproj, average", d_ff=f, **SIZES)
    attention = 4 * 2 * n * d * d + 2 * 2 * n * n * d
    bproj = 2 * n * n * d + 2 * n * d * d
    average = 2 * n * d * d
    feed_forward = 3 * 2 * (2 * n * d * f)
    assert mixers.count_flops(spec) == attention + bproj + average + feed_forward
    assert mixers.count_flops(spec, seq_len=6) < mixers.count_flops(spec) / 2 + 1


def test__block__bias_off__has_no_biases():
    spec = EncoderSpec(blocks=[BlockSpec(mixer="identity", d_ff=8, bias=False)], **SIZES)
    feed_forward = mixers.Encoder(spec).blocks[0].feed_forward
    assert [name for name, _ in feed_forward.named_parameters()] == ["wide.weight", "narrow.weight"]
