"""The presets: Table 1 against arithmetic by hand and BERT's form, ModernBERT's against its own."""

import pytest

import mixers
from mixers.presets import NAMES, TABLE_1, preset

D, D_FF, LAYERS = 768, 3072, 12
NORM = 2 * D
EMBEDDINGS = (30_522 + 512 + 2) * D + NORM
FEED_FORWARD = (D * D_FF + D_FF) + (D_FF * D + D)
PROJECTION = D * D + D
MIXER = {
    "average": PROJECTION,
    "bproj": PROJECTION + 384 * 384,
    "sepconv": 2 * PROJECTION + 16 * 128 + PROJECTION,
    "bert-base": 4 * PROJECTION,
}


@pytest.mark.parametrize("name", TABLE_1)
def test__preset__parameters__are_those_counted_by_hand(name):
    expected = EMBEDDINGS + LAYERS * (FEED_FORWARD + 2 * NORM + MIXER[name])
    assert mixers.count_parameters(preset(name)) == expected


def test__preset__names__differ_in_the_mixer_alone():
    assert (*TABLE_1, "modernbert") == NAMES
    assert TABLE_1 == ("average", "bproj", "sepconv", "bert-base")
    assert [preset(name).code for name in TABLE_1] == ["M" * 12, "B" * 12, "S" * 12, "A" * 12]
    specs = [preset(name).model_dump() for name in TABLE_1]
    for spec in specs:
        del spec["max_seq_len"], spec["n_positions"]
        for block in spec["blocks"]:
            del block["mixer"]
    assert all(spec == specs[0] for spec in specs)


def test__preset__positions__all_have_berts_table():
    assert {spec.n_positions or spec.max_seq_len for spec in map(preset, TABLE_1)} == {512}


def test__preset__bert_base__has_no_rotary_positions():
    mixer = preset("bert-base").blocks[0].mixer
    assert (mixer.n_heads, mixer.rotary) == (12, False)


def test__preset__modernbert__has_the_layers_and_sizes_of_the_published_configuration():
    from transformers import ModernBertConfig

    theirs, ours = ModernBertConfig(), preset("modernbert")
    kinds = {"full_attention": "A", "sliding_attention": "P"}
    assert ours.code == "".join(kinds[kind] for kind in theirs.layer_types)
    windows = {b.mixer.width for b in ours.blocks if b.mixer.kind == "sparse_attention"}
    assert windows == {theirs.local_attention // 2}
    assert {block.mixer.n_heads for block in ours.blocks} == {theirs.num_attention_heads}
    assert all(block.mixer.rotary for block in ours.blocks)
    sizes = (ours.vocab_size, ours.d_model, ours.max_seq_len, ours.norm_eps)
    assert sizes == (
        theirs.vocab_size, theirs.hidden_size, theirs.max_position_embeddings, theirs.norm_eps,
    )  # fmt: skip
    # A gated layer has three matrices, ours two.
    assert {2 * block.d_ff for block in ours.blocks} == {3 * theirs.intermediate_size}


def test__preset__unknown_name__is_refused_with_the_nearest():
    with pytest.raises(mixers.MixerError, match="did you mean 'bert-base'"):
        preset("bert_base")
