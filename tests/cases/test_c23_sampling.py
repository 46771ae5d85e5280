"""C23: samples repeat no more than chance allows and depend on nothing but the seed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from texts import write_folder

from search.data.spec import DataSpec
from search.tasks.mlm import MaskedLanguageModelling, MlmConfig

BATCH = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("texts") / "documents", n_words=400)


def make(folder: Path) -> MaskedLanguageModelling:
    config = MlmConfig(data=DataSpec(source=str(folder)), vocab_size=100, seq_len=16)
    return MaskedLanguageModelling(config, seed=0, cache_dir=folder.parent / "cache")


def sample(task: MaskedLanguageModelling, step: int) -> tuple[list[bytes], list[bytes]]:
    """Returns the texts and the masked inputs of a step's rows."""
    batch = task.train_batch(step, seed=7, batch_size=BATCH)
    text = batch["ids"].clone()
    text.view(-1)[batch["target_index"]] = batch["target_ids"]
    return (
        [row.numpy().tobytes() for row in text],
        [row.numpy().tobytes() for row in batch["ids"]],
    )


def test__C23__two_epochs__no_text_twice_within_an_epoch_and_no_masked_row_twice(
    folder: Path,
) -> None:
    task = make(folder)
    per_epoch = task.training_windows.per_epoch
    steps = 2 * per_epoch // BATCH
    assert steps * BATCH > 1_000
    found = [sample(task, step) for step in range(steps)]
    texts = [text for rows, _ in found for text in rows]
    assert len(set(texts[:per_epoch])) == per_epoch
    inputs = [row for _, rows in found for row in rows]
    assert len(set(inputs)) == len(inputs)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test__C23__any_number_of_loader_workers__same_samples(folder: Path, workers: int) -> None:
    expected = [sample(make(folder), step) for step in range(10)]
    torch.manual_seed(workers)
    task = make(folder)
    task.prepare()
    with ThreadPoolExecutor(workers) as pool:
        assert list(pool.map(lambda step: sample(task, step), range(10))) == expected


def test__C23__training_and_held_out_splits__share_no_sample(folder: Path) -> None:
    task = make(folder)
    per_epoch = task.training_windows.per_epoch
    train = {text for step in range(per_epoch // BATCH) for text in sample(task, step)[0]}
    held_out = set()
    for split in ("selection", "test"):
        for batch in task.evaluation_batches(split, 1):
            batch["ids"].view(-1)[batch["target_index"]] = batch["target_ids"]
            if len(batch["ids"]) and bool(batch.get("mask", torch.ones(1)).all()):
                held_out.add(batch["ids"].numpy().tobytes())
    assert len(held_out) > 50
    assert not held_out & train
