from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from texts import words, write_folder

from mixers.spec import EncoderSpec
from search.data.spec import DataSpec
from search.data.tokenizer import train_wordpiece
from search.errors import InputError
from search.probe import BASES
from search.tasks import SPLITS, build_task, task_registry
from search.tasks.base import PROBE_CONTEXTS
from search.tasks.mlm import MaskedLanguageModelling, MlmConfig

MakeTask = Callable[..., MaskedLanguageModelling]


@pytest.fixture
def make_task(text_folder: Path, cache_dir: Path) -> MakeTask:
    """Returns a function that builds a task like `small_task` with some fields changed."""

    def make(
        *, seed: int = 3, source: Path | None = None, cache: Path | None = None, **fields: object
    ) -> MaskedLanguageModelling:
        data = DataSpec(source=str(source or text_folder))
        sizes = {"vocab_size": 100, "seq_len": 16, "evaluation_windows": 40, "test_windows": 40}
        config = MlmConfig.model_validate({"data": data, **sizes, **fields})
        return MaskedLanguageModelling(config, seed=seed, cache_dir=cache or cache_dir)

    return make


def spec_for(task: MaskedLanguageModelling, architecture: str = "average*2") -> EncoderSpec:
    sizes = task.config.sizes
    return EncoderSpec.of(
        architecture,
        d_ff=32,
        d_model=16,
        vocab_size=sizes.vocab_size,
        max_seq_len=sizes.max_seq_len,
    )


def model_for(task: MaskedLanguageModelling, architecture: str = "average*2") -> torch.nn.Module:
    torch.manual_seed(0)
    return task.build_model(spec_for(task, architecture))


def test__task_registry__entry_points__mlm_is_built_in() -> None:
    entry = task_registry().get("mlm")
    assert entry.distribution == "mixsearch"
    assert entry.plugin is MaskedLanguageModelling


def test__build_task__unknown_kind__nearest_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'mlm'"):
        task_registry().load("mml")
    assert isinstance(build_task(MlmConfig(), seed=0, cache_dir=tmp_path), MaskedLanguageModelling)


@pytest.mark.parametrize(
    "fields",
    [
        {"vocab_sise": 3},
        {"data": {"sauce": "sotu"}},
        {"seq_len": 1},
        {"mask_probability": 0.0},
        {"vocab_size": 512.0},
    ],
)
def test__mlm_config__wrong_field__refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MlmConfig.model_validate(fields)


def test__prepare__by_document__no_text_in_two_splits(small_task: MaskedLanguageModelling) -> None:
    streams = small_task.corpus.streams
    documents = [set(streams[split].documents.tolist()) for split in SPLITS]
    assert sorted(number for found in documents for number in found) == list(range(30))
    facts = small_task.describe()
    assert facts["split_by"] == "documents"
    assert facts["vocabulary"] == 100
    assert [facts["splits"][split]["documents"] for split in SPLITS] == [24, 3, 3]


def test__prepare__tokens__are_the_text(
    small_task: MaskedLanguageModelling, text_folder: Path
) -> None:
    stream = small_task.corpus.streams["selection"]
    ids = stream.tokens[: stream.offsets[1]].tolist()
    text = (text_folder / "document03.txt").read_text(encoding="utf-8")
    assert "".join(small_task.tokenizer.decode(ids).split()) == "".join(text.split())


def test__prepare__held_out_words__unknown_to_the_tokenizer(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "texts")
    for i in (3, 13, 23, 8, 18, 28):
        text = words(50, seed=i) + " \u0416\u0424" * 100
        (folder / f"document{i:02d}.txt").write_text(text, encoding="utf-8")
    config = MlmConfig(data=DataSpec(source=str(folder)), vocab_size=100, seq_len=16)
    task = MaskedLanguageModelling(config, seed=0, cache_dir=tmp_path / "cache")
    task.prepare()
    facts = task.describe()["splits"]
    assert facts["train"]["unknown_tokens"] == 0
    assert facts["selection"]["unknown_tokens"] == 300
    # Special tokens, [UNK] among them, are never targets.
    _, masked = task.evaluation["selection"]
    assert masked.targets.min() >= 5


def test__prepare__one_file__gap_between_all_splits(tmp_path: Path) -> None:
    # Every word is a number, so the place of each token in the text is known.
    path = tmp_path / "count.txt"
    path.write_text(" ".join(str(i) for i in range(10_000, 40_000)), encoding="utf-8")
    config = MlmConfig(data=DataSpec(source=str(path)), vocab_size=64, seq_len=32)
    task = MaskedLanguageModelling(config, seed=0, cache_dir=tmp_path / "cache")
    task.prepare()
    tokenizer = task.tokenizer
    places: list[tuple[int, str]] = []
    for split in SPLITS:
        stream = task.corpus.streams[split]
        for start, end in zip(stream.offsets[:-1], stream.offsets[1:], strict=True):
            decoded = tokenizer.decode(stream.tokens[start:end]).split()
            # A block may start or end inside a word.
            whole = [word for word in decoded if len(word) == 5 and word.isdigit()]
            assert [int(w) for w in whole] == list(range(int(whole[0]), int(whole[-1]) + 1))
            places += [(int(whole[0]), split), (int(whole[-1]), split)]
    places.sort()
    assert len(places) == 2 * 3 * 20
    for (end, split), (start, other) in zip(places[1:-1:2], places[2::2], strict=True):
        # Train is followed by selection, selection by test, and test by the next section; a word
        # has at most 5 tokens, and a gap 32 tokens at least.
        assert split != other
        assert start - end > 32 // 5


def test__prepare__second_task__reads_the_cache(
    make_task: MakeTask, small_task: MaskedLanguageModelling, cache_dir: Path
) -> None:
    before = sorted(path.name for path in cache_dir.iterdir())
    task = make_task()
    task.prepare()
    assert task.fingerprint == small_task.fingerprint
    assert sorted(path.name for path in cache_dir.iterdir()) == before


def test__prepare__truncated_cache_file__built_again(
    make_task: MakeTask, small_task: MaskedLanguageModelling, tmp_path: Path
) -> None:
    first = make_task(cache=tmp_path)
    first.prepare()
    (tokens,) = tmp_path.glob("text-*/train.tokens.npy")
    tokens.write_bytes(tokens.read_bytes()[:-100])
    second = make_task(cache=tmp_path)
    second.prepare()
    assert second.fingerprint == small_task.fingerprint


def test__prepare__cache__holds_no_pickle(make_task: MakeTask, tmp_path: Path) -> None:
    make_task(cache=tmp_path).prepare()
    endings = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert endings == {".npy", ".json"}


def test__fingerprint__anything_that_changes_trials__differs(
    make_task: MakeTask, text_folder: Path, tmp_path: Path
) -> None:
    other = write_folder(tmp_path / "other")
    (other / "document00.txt").write_text(words(300, seed=99), encoding="utf-8")
    tasks = [
        make_task(),
        make_task(seed=4),
        make_task(source=other),
        make_task(vocab_size=90),
        make_task(seq_len=8),
        make_task(mask_probability=0.2),
        make_task(evaluation_windows=30),
    ]
    assert len({task.fingerprint for task in tasks}) == len(tasks)
    same = write_folder(tmp_path / "same")
    assert make_task(source=same).fingerprint == tasks[0].fingerprint


@pytest.mark.parametrize("text", [words(60), words(300)])
def test__prepare__too_little_text__one_line_with_counts(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tiny.txt"
    path.write_text(text, encoding="utf-8")
    config = MlmConfig(data=DataSpec(source=str(path)))
    with pytest.raises(InputError) as caught:
        MaskedLanguageModelling(config, seed=0, cache_dir=tmp_path / "cache").prepare()
    text = str(caught.value)
    assert "tiny.txt: too little text" in text
    assert "test 0" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "seq_len", "reason"),
    [("a " * 20_000, 16, "two different tokens"), (words(6_000), 64, "24 probe contexts of 64")],
)
def test__prepare__text_that_no_probe_could_use__refused_before_any_trial(
    tmp_path: Path, text: str, seq_len: int, reason: str
) -> None:
    path = tmp_path / "odd.txt"
    path.write_text(text, encoding="utf-8")
    config = MlmConfig(data=DataSpec(source=str(path)), seq_len=seq_len)
    with pytest.raises(InputError, match=reason):
        MaskedLanguageModelling(config, seed=0, cache_dir=tmp_path / "cache").prepare()


def test__probe_contexts__small_probe__takes_as_many_as_are_promised() -> None:
    assert BASES["small"] == PROBE_CONTEXTS


def test__prepare__given_tokenizer__is_used_and_kept(make_task: MakeTask, tmp_path: Path) -> None:
    given = train_wordpiece([words(3_000)], 120)
    given.save_pretrained(tmp_path / "given")
    task = make_task(tokenizer=str(tmp_path / "given"), vocab_size=120)
    task.prepare()
    assert task.tokenizer.get_vocab() == given.get_vocab()
    with pytest.raises(InputError, match="set vocab_size to 120"):
        make_task(tokenizer=str(tmp_path / "given"), vocab_size=119).prepare()


def test__train_batch__same_arguments__same_batch_whatever_ran_before(
    make_task: MakeTask, small_task: MaskedLanguageModelling
) -> None:
    fresh = make_task()
    expected = fresh.train_batch(5, seed=1, batch_size=8)
    torch.manual_seed(9)
    np.random.seed(9)
    for step in (7, 0, 5):
        batch = small_task.train_batch(step, seed=1, batch_size=8)
    assert batch.keys() == expected.keys() == {"ids", "target_index", "target_ids"}
    for name, tensor in batch.items():
        assert tensor.dtype == torch.int64
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=0)
    for other in (
        small_task.train_batch(6, seed=1, batch_size=8),
        small_task.train_batch(5, seed=2, batch_size=8),
    ):
        assert not torch.equal(other["ids"], expected["ids"])


def test__train_batch__any_step__targets_are_the_text_of_the_training_split(
    small_task: MaskedLanguageModelling,
) -> None:
    stream = small_task.corpus.streams["train"]
    text = stream.tokens.tobytes()
    batch = small_task.train_batch(11, seed=0, batch_size=16)
    ids = batch["ids"].clone()
    ids.view(-1)[batch["target_index"]] = batch["target_ids"]
    for row in ids.numpy():
        assert text.find(row.astype(stream.tokens.dtype).tobytes()) >= 0


def test__evaluation_batches__every_batch_size__same_examples(
    small_task: MaskedLanguageModelling,
) -> None:
    def joined(batch_size: int) -> dict[str, torch.Tensor]:
        parts: dict[str, list[torch.Tensor]] = {}
        rows = 0
        for batch in small_task.evaluation_batches("selection", batch_size):
            batch["target_index"] = batch["target_index"] + 16 * rows
            rows += len(batch["ids"])
            for name, tensor in batch.items():
                parts.setdefault(name, []).append(tensor)
        return {name: torch.cat(tensors) for name, tensors in parts.items()}

    whole = joined(1000)
    assert len(whole["ids"]) == 40
    for batch_size in (1, 7, 40):
        for name, tensor in joined(batch_size).items():
            assert torch.equal(tensor, whole[name])


def test__evaluation_batches__no_cap__every_token_of_the_split_once(make_task: MakeTask) -> None:
    task = make_task(evaluation_windows=10_000)
    found = []
    for batch in task.evaluation_batches("selection", 8):
        batch["ids"].view(-1)[batch["target_index"]] = batch["target_ids"]
        found += batch["ids"][batch["mask"]].tolist()
    assert found == task.corpus.streams["selection"].tokens.tolist()


def test__evaluation_batches__every_window__has_a_target(make_task: MakeTask) -> None:
    task = make_task(evaluation_windows=10_000)
    for batch in task.evaluation_batches("selection", 8):
        rows = set((batch["target_index"] // 16).tolist())
        assert rows == set(range(len(batch["ids"])))


@pytest.mark.parametrize("head", ["bert", "tied"])
@pytest.mark.parametrize("architecture", ["attention(rotary=true)*2", "sepconv, bproj"])
def test__loss__model__equals_the_dense_definition_in_float64(
    make_task: MakeTask, architecture: str, head: str
) -> None:
    task = make_task(head=head)
    model = model_for(task, architecture).double()
    batch = next(task.evaluation_batches("selection", 40))
    hidden = model.encoder(batch["ids"], batch.get("mask"))
    embedding = model.encoder.token_embedding.weight
    if head == "bert":
        hidden = model.head.norm(torch.nn.functional.gelu(model.head.dense(hidden)))
    log_p = torch.log_softmax(hidden @ embedding.T + model.head.bias, dim=-1).flatten(0, 1)
    picked = log_p[batch["target_index"], batch["target_ids"]]
    records = task.records(model, batch)
    # The loss is computed from float32 logits.
    torch.testing.assert_close(task.loss(model, batch).double(), -picked.mean(), rtol=1e-6, atol=0)
    torch.testing.assert_close(records["nll"].double(), -picked, rtol=1e-5, atol=1e-6)
    best = log_p[batch["target_index"]].argmax(-1)
    assert records["correct"].tolist() == (best == batch["target_ids"]).tolist()
    assert records["document"].tolist() == batch["target_document"].tolist()


@pytest.mark.parametrize(
    ("head", "own"),
    [
        ("bert", {"dense.weight", "dense.bias", "norm.weight", "norm.bias", "bias"}),
        ("tied", {"bias"}),
    ],
)
def test__build_model__head__is_tied_to_the_embedding(
    make_task: MakeTask, head: str, own: set[str]
) -> None:
    task = make_task(head=head)
    model = model_for(task)
    assert {name for name, _ in model.head.named_parameters()} == own
    loss = task.loss(model, task.train_batch(0, seed=0, batch_size=4))
    loss.backward()
    gradient = model.encoder.token_embedding.weight.grad
    # Every id is an output, so every row of the tied matrix is trained.
    assert bool((gradient.abs().sum(1) > 0).all())


def test__build_model__too_small_a_spec__names_the_field(
    small_task: MaskedLanguageModelling,
) -> None:
    spec = spec_for(small_task).model_copy(update={"max_seq_len": 8})
    with pytest.raises(InputError, match=r"encoder\.max_seq_len: 8"):
        small_task.build_model(spec)


def test__loss__text_that_its_neighbours_decide__is_learnt(tmp_path: Path) -> None:
    # Targets at other places than the hidden tokens would leave the loss at log 10 = 2.3.
    folder = tmp_path / "texts"
    folder.mkdir()
    for i in range(20):
        letters = [chr(ord("a") + (i + j) % 10) for j in range(200 + i)]
        (folder / f"{i:02d}.txt").write_text(" ".join(letters), encoding="utf-8")
    config = MlmConfig(data=DataSpec(source=str(folder)), vocab_size=64, seq_len=16)
    task = MaskedLanguageModelling(config, seed=0, cache_dir=tmp_path / "cache")
    model = model_for(task, "sepconv*2")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    for step in range(150):
        loss = task.loss(model, task.train_batch(step, seed=0, batch_size=16))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        batch = next(task.evaluation_batches("selection", 40))
        assert task.loss(model, batch).item() < 0.5


def test__probe_contexts__selection__full_windows_without_masks(
    small_task: MaskedLanguageModelling,
) -> None:
    contexts = small_task.probe_contexts(5)
    assert contexts.shape == (5, 16)
    assert contexts.dtype == torch.int64
    stream = small_task.corpus.streams["selection"]
    text = stream.tokens.tobytes()
    for row in contexts.numpy():
        assert text.find(row.astype(stream.tokens.dtype).tobytes()) >= 0
    with pytest.raises(InputError, match="give more text"):
        small_task.probe_contexts(10_000)


def test__probe_vocabulary__ids__occur_in_training_and_are_not_special(
    small_task: MaskedLanguageModelling,
) -> None:
    ids = small_task.probe_vocabulary().tolist()
    occurring = set(small_task.corpus.streams["train"].tokens.tolist())
    assert ids == sorted(occurring - set(range(5)))


def test__prepare__embedded_corpus__old_and_new_speeches_in_every_split(cache_dir: Path) -> None:
    config = MlmConfig(data=DataSpec(max_tokens=300_000), vocab_size=256)
    task = MaskedLanguageModelling(config, seed=0, cache_dir=cache_dir)
    facts = task.describe()
    assert "sotu" in facts["source"]
    assert facts["vocabulary"] == 256
    for split in SPLITS:
        documents = task.corpus.streams[split].documents
        n = sum(facts["splits"][name]["documents"] for name in SPLITS)
        assert documents.min() < 0.3 * n
        assert documents.max() > 0.6 * n


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("wikitext-2/wiki.valid.tokens", "documents"),
        ("tinyshakespeare/train.txt", "blocks"),
        ("austen", "blocks"),
    ],
)
def test__prepare__real_text__three_usable_splits(
    test_data: Path, cache_dir: Path, source: str, rule: str
) -> None:
    data = DataSpec(source=str(test_data / source), max_tokens=150_000)
    task = MaskedLanguageModelling(MlmConfig(data=data), seed=0, cache_dir=cache_dir)
    facts = task.describe()
    assert facts["split_by"] == rule
    total = sum(facts["splits"][split]["tokens"] for split in SPLITS)
    assert facts["splits"]["train"]["tokens"] > 0.75 * total
    for split in ("selection", "test"):
        assert facts["splits"][split]["tokens"] > 0.04 * total
        assert facts["splits"][split]["evaluation_documents"] >= 4
    batch = task.train_batch(0, seed=0, batch_size=32)
    assert batch["ids"].shape == (32, 64)
    assert batch["target_ids"].shape == (320,)
