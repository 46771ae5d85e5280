"""C22: a metric of a split is not the mean of its batches' metrics."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import torch
from torch import nn

from search.tasks import SPLITS, Split, Task, TaskConfig, TaskSizes
from search.tasks.evaluation import collect_records, compute_metrics, evaluate

RIGHT = torch.tensor([True] * 8 + [False] * 2)


class TenConfig(TaskConfig):
    kind: Literal["local.ten"] = "local.ten"

    @property
    def sizes(self) -> TaskSizes:
        return TaskSizes(vocab_size=2, max_seq_len=1)


class TenExamples(Task[TenConfig]):
    """Ten examples, of which the first eight are always right."""

    config_type: ClassVar[type[TaskConfig]] = TenConfig
    fingerprint = "ten"

    def prepare(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"splits": list(SPLITS)}

    def build_model(self, spec: Any) -> nn.Module:
        return nn.Identity()

    def train_batch(self, step: int, *, seed: int, batch_size: int) -> dict[str, torch.Tensor]:
        return {}

    def evaluation_batches(
        self, split: Split, batch_size: int
    ) -> Iterator[dict[str, torch.Tensor]]:
        for rows in torch.arange(10).split(batch_size):
            yield {"rows": rows}

    def loss(self, model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.zeros(())

    def records(self, model: nn.Module, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        rows = batch["rows"]
        return {"nll": rows.float(), "correct": RIGHT[rows], "document": rows}

    def probe_contexts(self, n: int) -> Any:
        return torch.zeros(n, 1, dtype=torch.int64)

    def probe_vocabulary(self) -> Any:
        return torch.arange(2)


@pytest.mark.parametrize("batch_size", [1, 3, 4, 10])
def test__C22__four_four_two__exactly_four_fifths(tmp_path: Path, batch_size: int) -> None:
    task = TenExamples(TenConfig(), seed=0, cache_dir=tmp_path)
    metrics = evaluate(task, nn.Identity(), "test", batch_size, "cpu", ["accuracy", "loss"])
    assert metrics == {"accuracy": 0.8, "loss": 4.5}
    records = collect_records(task, nn.Identity(), "test", batch_size, "cpu")
    assert compute_metrics(records, ["accuracy"]) == {"accuracy": 0.8}
