"""C15: a masked-LM batch in which nothing was masked."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mixers.spec import EncoderSpec
from search.data.spec import DataSpec
from search.tasks.evaluation import evaluate
from search.tasks.mlm import MaskedLanguageModelling, MlmConfig


@pytest.fixture
def task(tmp_path: Path) -> MaskedLanguageModelling:
    """A task on 1,200 texts of one to four one-letter words, so of one to four tokens."""
    rng = np.random.default_rng(0)
    letters = [chr(ord("a") + i) for i in range(20)]
    texts = [" ".join(rng.choice(letters, 1 + i % 4)) for i in range(1200)]
    (tmp_path / "texts.csv").write_text("\n".join(["text", *texts]), encoding="utf-8")
    data = DataSpec(source=str(tmp_path / "texts.csv"))
    task = MaskedLanguageModelling(
        MlmConfig(data=data, vocab_size=64, seq_len=8), seed=0, cache_dir=tmp_path / "cache"
    )
    task.prepare()
    return task


def model_for(task: MaskedLanguageModelling) -> torch.nn.Module:
    torch.manual_seed(0)
    spec = EncoderSpec.of("attention, sepconv", d_ff=16, d_model=16, vocab_size=64, max_seq_len=8)
    return task.build_model(spec)


def test__C15__batches_of_one_short_text__a_target_each_and_a_finite_loss(
    task: MaskedLanguageModelling,
) -> None:
    model = model_for(task)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lengths = set()
    for step in range(500):
        batch = task.train_batch(step, seed=0, batch_size=1)
        lengths.add(int(batch["mask"].sum()))
        assert len(batch["target_ids"]) == 1
        loss = task.loss(model, batch)
        assert torch.isfinite(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert lengths == {1, 2, 3, 4}
    assert all(torch.isfinite(p).all() for p in model.parameters())
    for split in ("selection", "test"):
        assert np.isfinite(evaluate(task, model, split, 1, "cpu", ["loss"])["loss"])


def test__C15__batch_without_any_target__adds_nothing(task: MaskedLanguageModelling) -> None:
    model = model_for(task)
    batch = task.train_batch(0, seed=0, batch_size=2)
    empty = {**batch, "target_index": batch["target_index"][:0]}
    empty["target_ids"] = batch["target_ids"][:0]
    loss = task.loss(model, empty)
    loss.backward()
    assert loss.item() == 0.0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())
