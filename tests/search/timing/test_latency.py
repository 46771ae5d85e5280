import pytest
import torch
from torch import nn

from search.timing.latency import time_calls, time_latency


class Bench:
    """A clock, a device with a queue, and calls whose cost is known."""

    def __init__(self, costs: list[float]) -> None:
        self.now = 100.0
        self.queued = 0.0
        self.costs = iter(costs)
        self.calls = 0

    def clock(self) -> float:
        return self.now

    def call(self) -> None:
        self.calls += 1
        self.queued += next(self.costs)

    def synchronize(self) -> None:
        self.now += self.queued
        self.queued = 0.0


def test__C13__time_calls__warm_up__is_dropped_and_queued_work_counts_where_it_was_queued():
    bench = Bench([50.0, 40.0, 1.0, 2.0, 3.0])

    samples = time_calls(
        bench.call, synchronize=bench.synchronize, clock=bench.clock, warm_up=2, repeats=3
    )

    assert bench.calls == 5
    assert samples == pytest.approx([1.0, 2.0, 3.0])


class Recorder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.frozen = nn.Dropout(0.5).eval()
        self.seen: list[tuple[bool, bool, int]] = []

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        self.seen.append((self.training, torch.is_grad_enabled(), 1 + (mask is not None)))
        return self.linear(x)


def test__time_latency__model_in_training__runs_in_evaluation_and_restores_each_mode():
    model = Recorder().train()
    model.frozen.eval()

    timing = time_latency(model, torch.zeros(2, 5, 4), warm_up=1, repeats=4)

    assert model.seen == [(False, False, 1)] * 5
    assert model.training
    assert model.linear.training
    assert not model.frozen.training
    assert (timing.n, timing.batch_size, timing.seq_len) == (4, 2, 5)
    assert (timing.device, timing.dtype) == ("cpu", "float32")
    assert 0 <= timing.low <= timing.median <= timing.high


def test__time_latency__mask_and_autocast__mask_is_passed_and_the_working_dtype_named():
    model = Recorder().double()
    mask = torch.ones(2, 5, dtype=torch.bool)

    plain = time_latency(model, torch.zeros(2, 5, 4).double(), mask, warm_up=0, repeats=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = time_latency(model, torch.zeros(2, 5, 4).double(), warm_up=0, repeats=1)

    assert model.seen[0][2] == 2
    assert (plain.dtype, cast.dtype) == ("float64", "bfloat16")
