import json

import pytest
import torch
from command import call
from texts import write_folder
from tiny_run import SETTINGS
from transformers import BertConfig, BertModel

import search
from mixers import EncoderSpec
from mixers.folder import save
from search.bert_folder import read_bert
from search.probe import initialised, probe, random_contexts
from search.probe.subjects import saved_model
from search.spec.study_file import with_overrides
from search.store.repo import Store

SMALL = ("--size", "small", "--d-model", "16", "--d-ff", "32", "--seq-len", "12")


def test__probe__notation__every_layer_and_both_precisions(capsys):
    done = call(capsys, "probe", "identity, average", *SMALL, "--layers", "all")

    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "0M  identity, average, as initialised from seed 0"
    assert lines[1] == "on 24 random contexts of 12 tokens, seed 0"
    assert any(line.startswith("last block, positional, small, float32") for line in lines)
    table = [
        line.split() for line in lines[lines.index("") :] if line.startswith(("layer", "last"))
    ]
    assert ["layer_0.block", "0", "0", "0"] in table
    assert ["last", "block", "1", "1", "1"] in table


def test__probe__saved_encoder__reads_its_weights(capsys, tmp_path):
    spec = EncoderSpec.of("attention", d_ff=32, vocab_size=90, d_model=16, max_seq_len=16)
    encoder = initialised(spec, seed=7)
    with torch.no_grad():
        encoder.blocks[0].mixer.out.weight.mul_(5)
    save(encoder, tmp_path)
    ids = torch.arange(90)
    contexts = random_contexts(ids, n=24, n_tokens=16, seed=0)
    wanted = probe(encoder, contexts, ids, seed=0).readings

    found = json.loads(call(capsys, "probe", str(tmp_path), "--size", "small", "--json").out)

    assert found["when"] == "final"
    assert {name: found["readings"][name] for name in wanted} == wanted


def test__probe__bert_folder__random_ids_or_text_in_its_own_tokens(capsys, tmp_path):
    folder, texts = tmp_path / "model", tmp_path / "text"
    write_folder(texts, 40, 300)
    whole = " ".join(path.read_text() for path in sorted(texts.iterdir())).replace(".", " .")
    words = sorted(set(whole.split()))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words) + 5, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=20,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    pieces = write_tokenizer(folder, words)
    ids = torch.arange(len(words) + 5)
    contexts = random_contexts(ids, n=24, n_tokens=20, seed=0)
    wanted = probe(read_bert(folder), contexts, ids, seed=0).readings["probe"]

    at_random = call(capsys, "probe", str(folder), "--size", "small", "--json")
    from_text = saved_model(
        folder, 24, seed=0, n_tokens=16, text=str(texts), cache_dir=tmp_path / "cache"
    )

    assert json.loads(at_random.out)["readings"]["probe"] == wanted
    assert from_text.source == f"24 windows of 16 tokens of {texts}"

    read = [" ".join(pieces[i] for i in row) for row in from_text.contexts.tolist()]
    assert all(window in whole for window in read)


def write_tokenizer(folder, words):
    """Writes a tokenizer of whole words; returns its words by id."""
    from tokenizers import Tokenizer, models

    from search.data.tokenizer import SPECIAL_TOKENS, bert_pipeline, wrap

    pieces = [*SPECIAL_TOKENS.values(), *words]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    model = models.WordPiece(vocabulary, unk_token=SPECIAL_TOKENS["unk_token"])
    wrap(bert_pipeline(Tokenizer(model))).save_pretrained(folder)
    return pieces


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A store with one short training, and its environment."""
    folder = tmp_path_factory.mktemp("trained")
    write_folder(folder / "text", 40, 300)
    changes = SETTINGS | {"task.data.source": str(folder / "text"), "training.steps": 4}
    study = with_overrides({}, [f"{path}={json.dumps(value)}" for path, value in changes.items()])
    url = f"sqlite:///{folder / 'search.db'}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEARCH_CACHE_DIR", str(folder / "cache"))
        patch.setenv("SEARCH_THREADS", "1")
        search.run(study, 1, url, name="tiny", in_process=True)
    return url, str(folder / "cache")


@pytest.mark.parametrize("at", ["init", "final"])
def test__probe__stored_trial__reads_what_the_trial_itself_recorded(
    capsys, trained, monkeypatch, at
):
    url, cache = trained
    monkeypatch.setenv("SEARCH_CACHE_DIR", cache)
    with Store.open(url) as store:
        whole = store.trial(store.rows("tiny")[0].id)
    recorded = whole["probes"][at]

    done = call(
        capsys, "probe", "tiny", "0", "--store", url, "--at", at, "--size", "small", "--json"
    )

    found = json.loads(done.out)
    assert done.code == 0
    assert found["when"] == at
    assert {name: found["readings"][name] for name in recorded} == recorded
    is_final = at == "final"
    assert ("as stored" in found["subject"]) == is_final
    assert ("training trial 0 again" in done.err) == is_final


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("average", "--text", "sotu"), "--text needs a folder with a model and its tokenizer"),
        (("{folder}",), "neither spec.json (a saved encoder) nor config.json"),
        (("demo", "12"), "trial 12 is failed: only a completed one has trained weights; --at init"),
    ],
)
def test__probe__nothing_to_probe__one_line_and_code_2(
    capsys, tmp_path, filled_store, arguments, words
):
    filled = [part.format(folder=tmp_path) for part in arguments]

    done = call(capsys, "probe", *filled, "--store", filled_store)

    assert done.code == 2
    assert words in done.error_line


def test__probe__contexts_longer_than_the_input__refused_with_both_lengths(capsys, tmp_path):
    path = tmp_path / "spec.json"
    spec = EncoderSpec.of("average", d_ff=0, vocab_size=9, d_model=16, max_seq_len=6)
    path.write_text(spec.model_dump_json())

    done = call(capsys, "probe", str(path), "--seq-len", "7")

    assert done.code == 2
    assert "--seq-len 7: the longest input is 6 tokens" in done.error_line


def test__probe__out__draws_a_page(capsys, tmp_path):
    path = tmp_path / "probe.html"

    done = call(capsys, "probe", "average", *SMALL, "--out", str(path))

    assert done.code == 0
    assert "what the last block tells apart" in path.read_text()
