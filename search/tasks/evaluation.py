"""Evaluation of a model on a whole split: exact per-example metrics, whatever the batch size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from search.data.splits import Split
from search.rows import DocumentSums
from search.tasks.metrics import Metric, Records, build_metric

if TYPE_CHECKING:
    import torch
    from torch import nn

    from search.tasks.base import Task

MOST_GROUPS = 64


def collect_records(
    task: Task[Any], model: nn.Module, split: Split, batch_size: int, device: torch.device | str
) -> dict[str, NDArray[Any]]:
    """Return the task's records of every target of a split, in the split's order.

    The model is evaluated as it is (dropout off, no gradients) and left in the mode it was in.

    Args:
        task: A prepared task.
        model: A model of the task, on `device`.
        split: The split.
        batch_size: Examples at a time; changes nothing but time and memory.
        device: Where the batches go.
    """
    import torch

    training = model.training
    model.eval()
    parts: dict[str, list[torch.Tensor]] = {}
    try:
        with torch.inference_mode():
            for batch in task.evaluation_batches(split, batch_size):
                moved = {name: tensor.to(device) for name, tensor in batch.items()}
                for name, tensor in task.records(model, moved).items():
                    parts.setdefault(name, []).append(tensor)
            # One copy to the host at the end instead of one wait per batch.
            return {name: torch.cat(tensors).cpu().numpy() for name, tensors in parts.items()}
    finally:
        model.train(training)


def compute_metrics(records: Records, metrics: Sequence[Metric | str]) -> dict[str, float]:
    """Return {name: value} of metrics, given as objects or as names.

    Raises:
        InputError: Unknown metric, or one that needs a record that is not there.
    """
    built = [build_metric(metric) if isinstance(metric, str) else metric for metric in metrics]
    return {metric.name: float(metric(records)) for metric in built}


def document_sums(records: Records, metric: str) -> DocumentSums | None:
    """Return a metric's sums by document; None where it is no mean over targets.

    More than `MOST_GROUPS` documents are put together, neighbours first, into groups of nearly
    equal numbers of targets. The groups depend on the split alone, so they are the same for every
    model.

    Raises:
        InputError: Unknown metric, or one that needs a record that is not there.
    """
    values = build_metric(metric).per_target(records)
    if values is None:
        return None
    _, place = np.unique(records["document"], return_inverse=True)
    counts = np.bincount(place)
    if len(counts) > MOST_GROUPS:
        before = np.cumsum(counts) - counts
        place = (before * MOST_GROUPS // counts.sum())[place]
    n, sums = np.bincount(place), np.bincount(place, weights=values)
    filled = n > 0
    return DocumentSums(
        tuple(int(count) for count in n[filled]), tuple(float(total) for total in sums[filled])
    )


def evaluate(
    task: Task[Any],
    model: nn.Module,
    split: Split,
    batch_size: int,
    device: torch.device | str,
    metrics: Sequence[Metric | str],
) -> dict[str, float]:
    """Return the metrics of a model on a split; see `collect_records`.

    Raises:
        InputError: Unknown metric, or one that the task cannot give.
    """
    records = collect_records(task, model, split, batch_size, device)
    return compute_metrics(records, metrics)
