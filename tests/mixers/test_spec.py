"""Specs: canonical form, ids, round trips, refusals."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import mixers
from mixers.activation import PiecewiseLinear
from mixers.config import FrozenModel, Since, canonical_json
from mixers.explain import explain
from mixers.spec import BlockSpec, EncoderSpec, load

SIZES = {"vocab_size": 512, "d_model": 64, "max_seq_len": 64}

divisors = st.sampled_from([1, 2, 4, 8, 16, 32])
configs = st.one_of(
    st.builds(
        lambda **fields: {"kind": "attention", **fields},
        n_heads=divisors | st.none(),
        rotary=st.booleans(),
    ),
    st.builds(
        lambda **fields: {"kind": "sepconv", **fields},
        kernel_size=st.integers(1, 200),
        n_filters=divisors,
    ),
    st.builds(
        lambda **fields: {"kind": "hardmax_shift", **fields},
        n_heads=st.integers(1, 99) | st.none(),
        rule=st.sampled_from(["shift", "sign"]),
        surrogate_width=st.floats(1e-6, 1e6),
    ),
    st.builds(
        lambda **fields: {"kind": "sparse_attention", **fields},
        pattern=st.sampled_from(["sliding_window", "strided", "fixed", "star", "random"]),
        width=st.integers(1, 99) | st.none(),
        rotary=st.booleans(),
    ),
    st.builds(
        lambda kind, **fields: {"kind": kind, **fields},
        kind=st.sampled_from(["lightconv", "dynamicconv"]),
        kernel_size=st.integers(2, 200),
        n_heads=divisors,
    ),
    st.builds(lambda scale: {"kind": "fourier", "orthonormal": scale}, st.booleans()),
    st.sampled_from(["bproj", "average", "identity"]).map(lambda kind: {"kind": kind}),
)
finite = st.floats(-1e9, 1e9)
activations = st.sampled_from(["gelu", "relu"]) | st.builds(
    lambda cut, slope, up, down: {
        "kind": "piecewise_linear",
        "breakpoints": [cut],
        "slopes": [0.0, slope],
        "intercepts": [up, down],
    },
    finite, finite, finite, finite,
)  # fmt: skip
blocks = st.builds(
    lambda **fields: fields,
    mixer=configs,
    d_ff=st.integers(0, 999),
    activation=activations,
    bias=st.booleans(),
)
documents = st.builds(
    lambda **fields: {**SIZES, **fields},
    norm=st.sampled_from(["pre", "post", "none"]),
    positions=st.sampled_from(["learned", "sinusoidal", "none"]),
    n_segments=st.integers(0, 3),
    scale_embeddings=st.booleans(),
    embedding_norm=st.booleans(),
    dropout=st.floats(0, 0.9),
    norm_eps=st.floats(1e-12, 1e-3),
    blocks=st.lists(blocks, min_size=1, max_size=5),
)


@given(documents)
@settings(deadline=None)  # the first example loads the plugins
def test__spec__any_document__round_trips_in_every_form(document):
    spec = EncoderSpec.model_validate(document)
    text = canonical_json(spec)
    for again in (
        EncoderSpec.model_validate_json(text),
        EncoderSpec.model_validate(json.loads(text)),
        EncoderSpec.model_validate(spec.model_dump()),
        EncoderSpec.model_validate_json(spec.model_dump_json()),
        EncoderSpec.model_validate(spec),
    ):
        assert again == spec
        assert hash(again) == hash(spec)
        assert canonical_json(again) == text
        assert again.arch_id == spec.arch_id


@settings(deadline=None)
@given(st.lists(configs, min_size=1, max_size=6))
def test__notation__any_mixers__round_trips(layers):
    spec = EncoderSpec(blocks=[{"mixer": layer, "d_ff": 1} for layer in layers], **SIZES)
    plain = mixers.format_architecture(block.mixer for block in spec.blocks)
    assert mixers.parse_architecture(plain) == tuple(block.mixer for block in spec.blocks)
    assert EncoderSpec.of(spec.notation, d_ff=1, **SIZES) == spec
    assert len(spec.code) == len(layers) == spec.n_layers


GOLDEN = {
    "attention*4": "a0fb3e8bb3003134",
    "attention(rotary=true)*4": "4bdb12a765425571",
    "sepconv*2, attention*2": "f593d005e4819a0b",
    "bproj, average, hardmax_shift, identity": "fb5f4040d634dbbc",
    "lightconv, dynamicconv, fourier, sparse_attention": "74813cb17e48ee38",
}


@pytest.mark.parametrize(("notation", "arch_id"), GOLDEN.items())
def test__arch_id__of_known_specs__never_changes(notation, arch_id):
    assert EncoderSpec.of(notation, d_ff=256, **SIZES).arch_id == arch_id


def test__canonical_json__literal__is_this_text():
    spec = EncoderSpec.of("sepconv", d_ff=0, vocab_size=9, d_model=16, max_seq_len=8)
    assert canonical_json(spec) == (
        '{"blocks":[{"activation":"gelu","bias":true,"d_ff":0,"mixer":{"kernel_size":31,'
        '"kind":"sepconv","n_filters":8}}],"d_model":16,"dropout":0,"embedding_norm":false,'
        '"max_seq_len":8,"n_segments":0,"norm":"pre","norm_eps":1e-05,"positions":"learned",'
        '"scale_embeddings":true,"schema_version":1,"vocab_size":9}'
    )


def test__canonical_json__field_that_came_later__is_left_out_at_its_default():
    from typing import Annotated

    class Grown(FrozenModel):
        width: float = 2.0
        shade: Annotated[int, Since(2)] = 5

    assert canonical_json(Grown()) == '{"width":2}'
    assert canonical_json(Grown(shade=6)) == '{"shade":6,"width":2}'


def test__causal__at_its_default__is_in_no_id_and_true_is_another_architecture():
    fields = {"d_ff": 256, **SIZES}
    plain, said, causal = (
        EncoderSpec.of("attention*4", **fields, **changes)
        for changes in ({}, {"causal": False}, {"causal": True})
    )
    assert "causal" not in canonical_json(plain)
    assert plain.arch_id == said.arch_id == GOLDEN["attention*4"]
    assert '"causal":true' in canonical_json(causal)
    assert causal.arch_id != plain.arch_id
    assert EncoderSpec.model_validate_json(canonical_json(causal)) == causal


def test__n_positions__longer_table__has_its_rows_and_keeps_other_ids():
    document = EncoderSpec.of("bproj", d_ff=0, **SIZES).model_dump()
    plain, said, longer = (
        EncoderSpec.model_validate(document | changes)
        for changes in ({}, {"n_positions": SIZES["max_seq_len"]}, {"n_positions": 100})
    )
    assert "n_positions" not in canonical_json(plain)
    assert said == plain
    assert said.arch_id == plain.arch_id != longer.arch_id
    assert EncoderSpec.model_validate_json(canonical_json(longer)) == longer
    encoder = mixers.Encoder(longer)
    assert encoder.position_embedding.weight.shape == (100, 64)
    assert encoder.blocks[0].mixer.positions.shape == (64, 64)
    with pytest.raises(mixers.MixerError, match="max_seq_len 64, got 65 tokens"):
        encoder(torch.zeros(1, 65, dtype=torch.long))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"n_positions": 63}, "63 rows do not reach max_seq_len 64"),
        ({"n_positions": 99, "positions": "none"}, "positions 'none' have no table"),
    ],
)
def test__n_positions__table_that_cannot_be__is_refused(changes, problem):
    document = EncoderSpec.of("average", d_ff=0, **SIZES).model_dump() | changes
    with pytest.raises(mixers.SpecError, match=problem):
        load(EncoderSpec, document)


def test__causal__mixer_that_looks_ahead__is_refused_by_its_layer():
    document = {
        **SIZES, "causal": True,
        "blocks": [{"mixer": kind, "d_ff": 1} for kind in ("average", "fourier", "bproj")],
    }  # fmt: skip
    with pytest.raises(mixers.SpecError) as caught:
        load(EncoderSpec, document)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("blocks.1.mixer.fourier: this mixer looks ahead by definition")
    assert "causal: false" in line
    assert EncoderSpec.model_validate(document | {"causal": False}).code == "MFB"


def test__default_heads__written_out_or_not__are_one_architecture():
    short, long = (EncoderSpec.of(text, d_ff=1, **SIZES) for text in
                   ("attention", "attention(n_heads=2)"))  # fmt: skip
    assert short == long
    assert short.arch_id == long.arch_id
    assert short.notation == long.notation == "attention"


@pytest.mark.parametrize("kind", ["attention", "average", "bproj", "hardmax_shift", "identity",
                                  "sepconv"])  # fmt: skip
@pytest.mark.parametrize("d_model", [16, 48, 80, 208, 768])
def test__kind_alone__any_width_divisible_by_16__builds(kind, d_model):
    mixer = mixers.build({"kind": kind}, d_model=d_model, max_seq_len=4)
    assert mixer(torch.zeros(1, 4, d_model)).shape == (1, 4, d_model)


def test__shorthand__is_accepted_and_never_stored():
    block = BlockSpec.model_validate({"mixer": "average", "d_ff": 4})
    assert block == BlockSpec.model_validate_json('{"mixer": "average", "d_ff": 4}')
    assert block.model_dump()["mixer"] == {"kind": "average"}


def refusal(**changes):
    document = {**SIZES, "blocks": [{"mixer": "average", "d_ff": 4}]} | changes
    lines = []
    for form in (document, json.dumps(document)):
        with pytest.raises(mixers.SpecError) as caught:
            load(EncoderSpec, form)
        lines.append(str(caught.value))
    assert lines[0] == lines[1]
    return lines[0]


def block(mixer, **fields):
    return {"blocks": [{"mixer": "average", "d_ff": 4}, {"mixer": mixer, "d_ff": 4, **fields}]}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            block({"kind": "sepconv", "n_filters": 7}),
            "blocks.1.mixer.sepconv.n_filters: 7 must divide d_model 64",
        ),
        (
            block({"kind": "attention", "n_heads": 5}),
            "blocks.1.mixer.attention.n_heads: 5 must divide d_model 64",
        ),
        (
            block({"kind": "attention", "n_heads": 64, "rotary": True}),
            "blocks.1.mixer.attention.rotary: heads of size 1 are odd; "
            "choose n_heads so that it is even",
        ),
        (
            block("attention") | {"d_model": 40},
            "blocks.1.mixer.attention.n_heads: d_model 40 has no default; "
            "give an n_heads that divides it",
        ),
        (
            block("atention"),
            "blocks.1.mixer: unknown kind 'atention'; did you mean 'attention'? "
            "known: attention, average, bproj, dynamicconv, fourier, hardmax_shift, identity, "
            "lightconv, sepconv, sparse_attention",
        ),
        (block({"knid": "average"}), "blocks.1.mixer: needs the key "
         "'kind' (got {'knid': 'average'})"),
        (block("average", activation="gleu"), "blocks.1.activation.name: 'gleu' is not valid; "
         "did you mean 'gelu'? known: gelu, relu"),
        ({"vocab_size": None}, "vocab_size: Input should be a valid integer (got None)"),
        ({"vocab_size": "512"}, "vocab_size: Input should be a valid integer (got '512')"),
        ({"d_model": 0}, "d_model: Input should be greater than or equal to 1 (got 0)"),
        ({"blocks": []}, "document: an encoder needs at least one block"),
        ({"schema_version": 2}, "schema_version: Input should be 1 (got 2)"),
    ],
)  # fmt: skip
def test__bad_value__is_refused_with_path_and_way_out(changes, line):
    assert refusal(**changes) == line


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test__number_that_is_none__is_refused(value):
    with pytest.raises(ValidationError):
        EncoderSpec.of("average", d_ff=1, dropout=value, **SIZES)
    with pytest.raises(ValidationError):
        BlockSpec.model_validate(
            {"mixer": {"kind": "hardmax_shift", "surrogate_width": value}, "d_ff": 1}
        )


def test__two_problems__are_two_lines():
    with pytest.raises(ValidationError) as caught:
        EncoderSpec.model_validate({**SIZES, "nrom": "pre", "dropuot": 0.1, "blocks": []})
    assert len(explain(caught.value, EncoderSpec)) == 2


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"breakpoints": [0.0], "slopes": [1.0], "intercepts": [0.0]}, "make 2 pieces"),
        ({"breakpoints": [1.0, 0.0], "slopes": [0.0] * 3, "intercepts": [0.0] * 3}, "ascend"),
        ({"breakpoints": [0.0], "slopes": [1.0, 2.0], "intercepts": [0.0] * 2}, "constant"),
        ({"breakpoints": [0.0] * 3, "slopes": [0.0], "intercepts": [0.0]}, "at most 2"),
    ],
)
def test__piecewise_linear__outside_the_class__is_refused(fields, text):
    with pytest.raises(ValidationError, match=text):
        PiecewiseLinear.model_validate(fields)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a mixer's name at character 1"),
        ("sepconv,", "expected a mixer's name at character 9"),
        ("sepconv*0", "expected a count from 1 to 10000"),
        ("sepconv*10001", "expected a count from 1 to 10000"),
        ("sepconv*" + "9" * 5000, "expected a count from 1 to 10000"),
        ("sepconv attention", "expected ',' or the end at character 9"),
        ("sepconv(kernel_size=3", "expected ',' or ')' at character 22"),
        ("sepconv(kernel_size)", "expected field=value at character 9"),
        ("sepconv(kernel_size=)", "expected a value at character 21"),
        ("sepconv(kernel_size=3, kernel_size=4)", "not 'kernel_size' again"),
        ("sepconv(kernal_size=3)", "did you mean 'kernel_size'"),
        ("sepcon*2", "did you mean 'sepconv'"),
        ("sepconv(kernel_size=3.5)", "valid integer"),
    ],
)
def test__notation__with_a_fault__says_where(text, problem):
    with pytest.raises(mixers.SpecError) as caught:
        mixers.parse_architecture(text)
    assert problem in str(caught.value)


def test__json_schema__lists_the_kinds_with_their_fields_and_the_short_form():
    schema = EncoderSpec.model_json_schema()
    mixer = schema["$defs"]["BlockSpec"]["properties"]["mixer"]
    union, short = mixer["anyOf"]
    assert set(union["discriminator"]["mapping"]) == set(short["enum"]) == set(mixers.available())
    assert "kernel_size" in schema["$defs"]["SeparableConfig"]["properties"]
    assert schema["properties"]["blocks"]["minItems"] == 1
    assert schema["additionalProperties"] is False
