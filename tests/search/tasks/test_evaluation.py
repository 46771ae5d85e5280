import numpy as np
import pytest
import torch

from mixers.spec import EncoderSpec
from search.errors import InputError
from search.tasks.evaluation import collect_records, evaluate
from search.tasks.mlm import MaskedLanguageModelling


@pytest.fixture
def model(small_task: MaskedLanguageModelling) -> torch.nn.Module:
    torch.manual_seed(0)
    spec = EncoderSpec.of(
        "attention*2", d_ff=32, d_model=16, vocab_size=100, max_seq_len=16, dropout=0.5
    )
    return small_task.build_model(spec)


def test__evaluate__every_batch_size__same_metrics(
    small_task: MaskedLanguageModelling, model: torch.nn.Module
) -> None:
    found = [
        evaluate(small_task, model, "selection", size, "cpu", ["loss", "accuracy"])
        for size in (1, 7, 40)
    ]
    for other in found[1:]:
        assert other["accuracy"] == found[0]["accuracy"]
        # Matrix products of another shape round differently in float32.
        assert other["loss"] == pytest.approx(found[0]["loss"], rel=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test__collect_records__dropout__is_off_and_the_mode_comes_back(
    small_task: MaskedLanguageModelling, model: torch.nn.Module, training: bool
) -> None:
    model.train(training)
    records = [collect_records(small_task, model, "test", 8, "cpu") for _ in range(2)]
    assert model.training is training
    assert model.encoder.blocks[0].training is training
    np.testing.assert_array_equal(records[0]["nll"], records[1]["nll"])
    assert all(p.grad is None for p in model.parameters())


def test__collect_records__records_fail__mode_comes_back(
    small_task: MaskedLanguageModelling, model: torch.nn.Module
) -> None:
    model.encoder.token_embedding = torch.nn.Embedding(2, 16)
    with pytest.raises(IndexError):
        collect_records(small_task, model, "test", 8, "cpu")
    assert model.training


def test__evaluate__unknown_metric__nearest_name(
    small_task: MaskedLanguageModelling, model: torch.nn.Module
) -> None:
    with pytest.raises(InputError, match="did you mean 'accuracy'"):
        evaluate(small_task, model, "test", 8, "cpu", ["acuracy"])
