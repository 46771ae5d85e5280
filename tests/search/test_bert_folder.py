"""Folders of Hugging Face's BERT models, read into encoders of ours; random weights."""

import json

import pytest
import torch
from transformers import BertConfig, BertForPreTraining, BertModel

from search.bert_folder import read_bert
from search.errors import InputError


def small(**changes):
    sizes = {
        "vocab_size": 30,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 40,
        "max_position_embeddings": 12,
    }
    torch.manual_seed(0)
    return BertConfig(**sizes | changes)


@pytest.fixture
def folder(tmp_path):
    BertModel(small()).save_pretrained(tmp_path)
    return tmp_path


@torch.no_grad()
def difference(model, encoder):
    ids = torch.randint(30, (2, 12))
    return (model.eval()(ids).last_hidden_state - encoder.eval()(ids)).abs().max().item()


@pytest.mark.parametrize(
    "saving", [{}, {"max_shard_size": "5KB"}], ids=["one_file", "several_files"]
)
@pytest.mark.parametrize("kind", [BertModel, BertForPreTraining])
def test__read_bert__saved_folder__is_the_model(kind, saving, tmp_path):
    model = kind(small(hidden_act="relu", layer_norm_eps=1e-3, initializer_range=0.2))
    model.save_pretrained(tmp_path, **saving)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == bool(saving)
    encoder = read_bert(tmp_path, dropout=0.1)
    assert encoder.spec.dropout == 0.1
    assert difference(getattr(model, "bert", model), encoder) <= 5e-6


def test__read_bert__config_that_says_nothing__is_as_transformers_reads_it(tmp_path):
    model = BertModel(small(hidden_size=36, num_attention_heads=12, initializer_range=0.2))
    model.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    assert difference(model, read_bert(tmp_path)) <= 5e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "albert"}, "model_type: 'albert' is not valid"),
        ({"hidden_act": "gelu_new"}, "hidden_act: 'gelu_new' is not valid"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type: 'relative_key'"),
        ({"is_decoder": True}, "is_decoder: "),
        ({"num_attention_heads": 5}, "n_heads: 5 must divide d_model 24"),
    ],
)
def test__read_bert__model_that_is_no_encoder__is_refused_by_field(change, message, folder):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    refused(folder, message)


def test__read_bert__no_folder_no_weights_or_a_damaged_file__is_one_line(folder):
    refused(folder / "nowhere", "config.json: No such file or directory")
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-9])
    refused(folder, f"{weights}: ")
    weights.unlink()
    refused(folder, "no model.safetensors; read the model with transformers")
    (folder / "config.json").write_text("{")
    refused(folder, "config.json: ")


def test__read_bert__lost_part__is_named(tmp_path):
    BertModel(small()).save_pretrained(tmp_path, max_shard_size="5KB")
    lost = sorted(tmp_path.glob("*.safetensors"))[1]
    lost.unlink()
    refused(tmp_path, lost.name)


def test__read_bert__weights_of_another_model__are_named(folder):
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["encoder.layer.0.adapter.weight"] = weights.pop("embeddings.LayerNorm.bias")
    save_file(weights, path)
    refused(
        folder,
        "1 missing: embeddings.LayerNorm.bias; 1 unexpected: encoder.layer.0.adapter.weight",
    )


def refused(folder, message):
    with pytest.raises(InputError) as error:
        read_bert(folder)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
