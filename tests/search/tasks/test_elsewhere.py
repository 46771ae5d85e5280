"""Trainings on a device that this machine lacks: fake tensors have its name, and no values.

An operation that mixes devices raises, and so does one that asks for a value, which would make a
GPU wait for its host at every step.
"""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call

import mixers
from mixers.spec import EncoderSpec
from search.tasks import Task, build_task
from search.tasks.base import Batch
from search.tasks.mlm import MaskedLanguageModelling
from search.tasks.mqar import MqarConfig

DEVICE = torch.device("lazy", 0)


class Calls(nn.Module):
    """A method of the task, as a module that holds the model."""

    def __init__(self, task: Task[Any], model: nn.Module) -> None:
        super().__init__()
        self.task = task
        self.model = model

    def forward(self, method: str, batch: Batch) -> Any:
        return getattr(self.task, method)(self.model, batch)


@pytest.fixture(params=["mlm", "mqar"])
def task(request: pytest.FixtureRequest, small_task: MaskedLanguageModelling) -> Task[Any]:
    if request.param == "mlm":
        return small_task
    config = MqarConfig.model_validate({"vocab_size": 64, "seq_len": 32, "n_pairs": 4})
    recall = build_task(config, seed=3, cache_dir=Path("unused"))
    recall.prepare()
    return recall


def elsewhere(task: Task[Any], kind: str, method: str, batch: Batch) -> Any:
    """Call a method of the task with a fake model and a fake batch on `DEVICE`."""
    spec = {
        "vocab_size": 100,
        "d_model": 64,
        "max_seq_len": task.config.seq_len,
        "blocks": [{"mixer": kind, "d_ff": 32}, {"mixer": "attention", "d_ff": 32}],
    }
    calls = Calls(task, task.build_model(EncoderSpec.model_validate(spec)).train())
    with FakeTensorMode() as mode:

        def moved(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: mode.from_tensor(tensor).to(DEVICE) for name, tensor in tensors.items()}

        kept = dict(chain(calls.named_parameters(), calls.named_buffers()))
        outcome = functional_call(calls, moved(kept), (method, moved(batch)))
        if method == "loss":
            outcome.backward()
    return outcome


@pytest.mark.parametrize("kind", mixers.available())
def test__training_step__stays_on_its_device_and_asks_for_no_value(
    task: Task[Any], kind: str
) -> None:
    loss = elsewhere(task, kind, "loss", task.train_batch(0, seed=1, batch_size=4))
    assert loss.device == DEVICE


@pytest.mark.parametrize("kind", mixers.available())
def test__records__stay_on_their_device(task: Task[Any], kind: str) -> None:
    batch = next(task.evaluation_batches("selection", 4))
    records = elsewhere(task, kind, "records", batch)
    assert {record.device for record in records.values()} == {DEVICE}
