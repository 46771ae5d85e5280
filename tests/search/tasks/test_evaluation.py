import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mixers.spec import EncoderSpec
from search.errors import InputError
from search.tasks.evaluation import MOST_GROUPS, collect_records, document_sums, evaluate
from search.tasks.metrics import Metric, Records
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


def test__document_sums__small_split__are_those_of_each_document(
    small_task: MaskedLanguageModelling, model: torch.nn.Module
) -> None:
    records = collect_records(small_task, model, "test", 7, "cpu")
    found = document_sums(records, "loss")
    documents = sorted(set(records["document"]))
    assert found.n == tuple(int((records["document"] == d).sum()) for d in documents)
    wanted = [float(records["nll"][records["document"] == d].sum()) for d in documents]
    assert found.sums == pytest.approx(wanted, rel=1e-6)
    whole = evaluate(small_task, model, "test", 40, "cpu", ["loss"])["loss"]
    assert sum(found.sums) / sum(found.n) == pytest.approx(whole, rel=1e-6)


@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=300),
    shift=st.integers(0, 1000),
)
def test__document_sums__any_documents__few_whole_groups_in_order(
    counts: list[int], shift: int
) -> None:
    documents = np.repeat(np.arange(len(counts)) + shift, counts)
    values = np.arange(len(documents), dtype=np.float64)
    found = document_sums({"document": documents, "nll": values}, "loss")
    assert len(found.n) == len(found.sums) <= MOST_GROUPS
    assert sum(found.n) == len(values)
    assert sum(found.sums) == values.sum()
    ends = np.cumsum(counts)
    assert set(np.cumsum(found.n)) <= set(ends)
    if len(counts) <= MOST_GROUPS:
        assert found.n == tuple(counts)
    # Another model on the same split has the same groups.
    assert document_sums({"document": documents, "nll": -values}, "loss").n == found.n


def test__document_sums__metric_that_is_no_mean__none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Largest(Metric):
        name, unit, direction = "largest", "nats", "minimize"

        def __call__(self, records: Records) -> float:
            return float(records["nll"].max())

    monkeypatch.setattr("search.tasks.evaluation.build_metric", lambda name: Largest())
    records = {"document": np.array([0]), "nll": np.array([1.0])}
    assert document_sums(records, "largest") is None
