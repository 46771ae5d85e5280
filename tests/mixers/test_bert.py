"""Weights of BERT in encoders of ours, against Hugging Face's own code; random weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertForMaskedLM, BertModel
from transformers.models.bert.modeling_bert import BertAttention

import mixers
from mixers.bert import encoder_from_bert, load_attention

TOLERANCE = {torch.float32: 5e-6, torch.float64: 1e-12}
SEGMENTS = "embeddings.token_type_embeddings.weight"
PATHS = ("eager", "sdpa")
SIZES = [
    pytest.param({"hidden_size": 16, "num_attention_heads": 1, "num_hidden_layers": 1}, id="tiny"),
    pytest.param(
        {
            "hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 3,
            "intermediate_size": 100, "hidden_act": "relu", "layer_norm_eps": 1e-3,
            "type_vocab_size": 3,
        },
        id="odd",
    ),
    pytest.param(
        {
            "hidden_size": 128, "num_attention_heads": 2, "num_hidden_layers": 4,
            "max_position_embeddings": 64,
        },
        id="bert-tiny",
    ),
]  # fmt: skip


def config(**changes):
    small = {
        "vocab_size": 50,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 40,
        "max_position_embeddings": 24,
    }
    return BertConfig(**small | changes)


@torch.no_grad()
def drawn(model, dtype=torch.float32, seed=0):
    """The model with every weight random and of a size that matters, biases and norms too."""
    random = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        size = 0.3
        if weight.dim() == 2 and "embeddings" not in name:
            size = weight.shape[1] ** -0.5
        around = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        weight.copy_(around + size * torch.randn(weight.shape, generator=random))
    return model.eval().to(dtype)


def padding(seq_len):
    """Three rows: all real, the second half padding, the first third padding."""
    mask = torch.ones(3, seq_len, dtype=torch.bool)
    mask[1, seq_len // 2 :] = False
    mask[2, : seq_len // 3] = False
    return mask


def renamed(weights, rule):
    return {rule(name): weight for name, weight in weights.items()}


def loaded(model, **settings):
    """Our encoder with a Hugging Face model's weights."""
    known = model.config
    return encoder_from_bert(
        model.state_dict(),
        n_heads=known.num_attention_heads,
        activation=known.hidden_act,
        norm_eps=known.layer_norm_eps,
        **settings,
    )


@torch.no_grad()
def worst_difference(model, encoder, *, seed=0):
    """Largest difference of the two outputs over the real tokens of padded sequences."""
    known = model.config
    torch.manual_seed(seed)
    mask = padding(known.max_position_embeddings)
    ids = torch.randint(known.vocab_size, mask.shape)
    segments = torch.randint(known.type_vocab_size, mask.shape)
    theirs = model(ids, attention_mask=mask.long(), token_type_ids=segments).last_hidden_state
    ours = encoder(ids, mask, segments)
    assert ours.dtype == theirs.dtype
    return (ours - theirs)[mask].abs().max().item()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("changes", SIZES)
def test__encoder_from_bert__output__is_the_last_hidden_state(changes, dtype, path):
    model = BertModel(config(**changes, attn_implementation=path))
    assert model.config._attn_implementation == path
    model = drawn(model, dtype)
    assert worst_difference(model, loaded(model)) <= TOLERANCE[dtype]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test__encoder_from_bert__size_of_bert_base__is_the_last_hidden_state(dtype, path):
    model = BertModel(
        BertConfig(vocab_size=1000, max_position_embeddings=128, attn_implementation=path)
    )
    model = drawn(model, dtype)
    assert worst_difference(model, loaded(model)) <= TOLERANCE[dtype]


@given(
    heads=st.sampled_from([1, 2, 4, 8]),
    d_head=st.sampled_from([1, 4, 16]),
    seq_len=st.integers(1, 40),
    path=st.sampled_from(PATHS),
    dtype=st.sampled_from(list(TOLERANCE)),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test__load_attention__update__is_the_layers_before_its_norm(
    heads, d_head, seq_len, path, dtype, seed
):
    d_model = heads * d_head
    layer = BertAttention(
        config(hidden_size=d_model, num_attention_heads=heads, attn_implementation=path)
    )
    layer = drawn(layer, dtype, seed)
    mixer = mixers.build(
        {"kind": "attention", "n_heads": heads}, d_model=d_model, max_seq_len=seq_len
    ).to(dtype)
    load_attention(mixer, layer.state_dict())
    mask = padding(seq_len)
    x = torch.randn(3, seq_len, d_model, dtype=dtype)
    hidden = torch.zeros(3, 1, 1, seq_len, dtype=dtype)
    hidden.masked_fill_(~mask[:, None, None, :], torch.finfo(dtype).min)
    with torch.no_grad():
        theirs = layer.output.dense(layer.self(x, hidden)[0])
        ours = mixer(x, mask)
    assert (ours - theirs)[mask].abs().max() <= TOLERANCE[dtype]


def swapped(weights):
    return renamed(
        weights,
        lambda name: (
            name.replace("query", "key") if "query" in name else name.replace("key", "query")
        ),
    )


PLANTED = [
    pytest.param(lambda w: w, {"n_heads": 4}, id="heads"),
    pytest.param(lambda w: w, {"norm_eps": 1e-12}, id="epsilon"),
    pytest.param(lambda w: w, {"activation": "relu"}, id="activation"),
    pytest.param(swapped, {}, id="query_and_key"),
    pytest.param(lambda w: w | {SEGMENTS: w[SEGMENTS].flip(0)}, {}, id="segments"),
]


@pytest.mark.parametrize(("spoil", "settings"), PLANTED)
def test__worst_difference__planted_slip__is_seen(spoil, settings):
    # What no shape tells; the comparison must be able to fail.
    model = drawn(BertModel(config(layer_norm_eps=1e-3)), torch.float64)
    right = {"n_heads": 2, "norm_eps": 1e-3}
    assert worst_difference(model, encoder_from_bert(model.state_dict(), **right)) <= 1e-12
    wrong = encoder_from_bert(spoil(dict(model.state_dict())), **right | settings)
    assert worst_difference(model, wrong) > 1e-5


def test__encoder_from_bert__spec__is_of_berts_form():
    spec = loaded(BertModel(config(type_vocab_size=3)), dropout=0.1).spec
    assert spec == mixers.EncoderSpec.of(
        "attention(n_heads=2)*2",
        d_ff=40,
        vocab_size=50,
        d_model=16,
        max_seq_len=24,
        norm="post",
        n_segments=3,
        scale_embeddings=False,
        embedding_norm=True,
        norm_eps=1e-12,
        dropout=0.1,
    )


def test__encoder_from_bert__weights__are_copied():
    model = drawn(BertModel(config()))
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    encoder = loaded(model)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.zero_()
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize(
    "rule",
    [
        lambda name: f"module.{name}",
        lambda name: f"_orig_mod.{name}",
        lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ),
    ],
    ids=["parallel", "compiled", "old"],
)
def test__encoder_from_bert__model_with_heads_and_other_wrapping__is_the_same(rule):
    model = drawn(BertForMaskedLM(config()))
    weights = renamed(model.state_dict(), rule)
    assert any(".cls." in f".{name}" for name in weights)
    assert worst_difference(model.bert, encoder_from_bert(weights, n_heads=2)) <= 5e-6


def without(weights, *names):
    return {name: weight for name, weight in weights.items() if name not in names}


QUERY = "encoder.layer.1.attention.self.query.weight"
FAULTS = [
    (lambda w: without(w, QUERY), f"1 missing: {QUERY}"),
    (lambda w: w | {"encoder.layer.0.adapter.weight": w[QUERY]},
     "1 unexpected: encoder.layer.0.adapter.weight"),
    (lambda w: w | {QUERY: w[QUERY][:, :-1]},
     f"1 of wrong form: {QUERY} is (16, 15), expected (16, 16)"),
    (lambda w: w | {QUERY: w[QUERY].to(torch.int8)},
     f"{QUERY} holds torch.int8, expected real numbers"),
    (lambda w: without(w, "embeddings.position_embeddings.weight"),
     "1 missing: embeddings.position_embeddings.weight"),
    (lambda w: w | {"embeddings.word_embeddings.weight": w[QUERY][0]},
     "embeddings.word_embeddings.weight is (16,), not a matrix"),
    (lambda w: {}, "4 missing: embeddings.word_embeddings.weight, "),
    (lambda w: {name: x for name, x in w.items() if ".layer.0." not in name or "dense" in name},
     "10 missing: encoder.layer.0.attention.self.query.weight, "),
    (lambda w: renamed(w, lambda name: name.replace("layer.1.", "layer.7.")),
     "16 unexpected: encoder.layer.7.attention.self.query.weight"),
    (lambda w: w | {f"bert.{QUERY}": w[QUERY]},
     f"{QUERY} and bert.{QUERY} name the same weight"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), FAULTS)
def test__encoder_from_bert__wrong_weights__are_named_in_one_line(spoil, message):
    weights = spoil(dict(BertModel(config()).state_dict()))
    with pytest.raises(mixers.MixerError) as refused:
        encoder_from_bert(weights, n_heads=2)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test__encoder_from_bert__all_kinds_of_problem__stand_in_one_line():
    weights = dict(BertModel(config()).state_dict())
    weights["extra"] = weights.pop(QUERY)
    weights["encoder.layer.0.output.dense.bias"] = torch.zeros(3)
    with pytest.raises(mixers.MixerError, match=r"1 missing: .*; 1 unexpected: extra; 1 of wrong"):
        encoder_from_bert(weights, n_heads=2)


def test__encoder_from_bert__heads_that_do_not_divide__are_refused():
    with pytest.raises(mixers.SpecError) as refused:
        encoder_from_bert(BertModel(config()).state_dict(), n_heads=3)
    assert str(refused.value).splitlines() == [
        "blocks.0.mixer.attention.n_heads: 3 must divide d_model 16"
    ]


def test__load_attention__wrong_weights__are_named_and_nothing_is_copied():
    layer = BertAttention(config())
    mixer = mixers.build({"kind": "attention", "n_heads": 2}, d_model=16, max_seq_len=8)
    before = mixer.qkv.weight.clone()
    weights = without(layer.state_dict(), "output.dense.bias") | {"self.extra": torch.zeros(1)}
    with pytest.raises(
        mixers.MixerError, match=r"1 missing: output.dense.bias; 1 unexpected: self.extra"
    ):
        load_attention(mixer, weights)
    assert torch.equal(mixer.qkv.weight, before)
