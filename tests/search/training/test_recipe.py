import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from search.training.recipe import (
    build_optimizer,
    learning_rate_factor,
    parameter_groups,
    reading_steps,
)


def factors(steps: int, warmup_fraction: float) -> list[float]:
    return [
        learning_rate_factor(step, steps=steps, warmup_fraction=warmup_fraction)
        for step in range(steps)
    ]


def test__learning_rate_factor__ten_steps_with_four_of_warm_up__equals_the_closed_form():
    expected = [0.25, 0.5, 0.75, 1.0]
    expected += [0.5 * (1 + math.cos(math.pi * k / 7)) for k in range(1, 7)]
    assert factors(10, 0.4) == pytest.approx(expected, abs=1e-15)


@given(steps=st.integers(1, 3000), warmup_fraction=st.floats(0, 1))
def test__learning_rate_factor__any_recipe__rises_to_one_then_falls_and_never_is_zero(
    steps, warmup_fraction
):
    values = factors(steps, warmup_fraction)
    peak = max(1, round(warmup_fraction * steps)) - 1
    assert values[peak] == 1.0
    assert all(a < b for a, b in itertools.pairwise(values[: peak + 1]))
    assert all(a > b for a, b in itertools.pairwise(values[peak:]))
    assert min(values) > 0


def test__build_optimizer__steps__follow_the_schedule_and_use_both_groups():
    recipe = SimpleNamespace(steps=8, warmup_fraction=0.5, learning_rate=0.2, weight_decay=0.1)
    optimizer, schedule = build_optimizer(nn.Linear(3, 2), recipe)
    rates = []
    for _ in range(8):
        rates.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    expected = [0.2 * factor for factor in factors(8, 0.5)]
    assert rates == [[rate, rate] for rate in expected]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.project = nn.Linear(4, 4)
        self.filters = nn.Parameter(torch.zeros(2, 3))
        self.thresholds = nn.Parameter(torch.zeros(7))
        self.norm = nn.LayerNorm(4)
        self.out = nn.Linear(4, 5)
        self.out.weight = self.embedding.weight
        self.frozen = nn.Parameter(torch.zeros(9, 9), requires_grad=False)


def test__parameter_groups__tied_model__matrices_decay_and_each_parameter_stands_once():
    model = Tied()
    decayed, kept = parameter_groups(model, 0.3)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert {names[id(p)] for p in decayed["params"]} == {"project.weight", "filters"}
    assert {names[id(p)] for p in kept["params"]} == {
        "embedding.weight",
        "project.bias",
        "thresholds",
        "norm.weight",
        "norm.bias",
        "out.bias",
    }
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.3, 0.0)


@given(steps=st.integers(1, 500), validations=st.integers(1, 40))
def test__reading_steps__any_recipe__last_at_the_end_and_gaps_equal_to_one_step(steps, validations):
    points = reading_steps(steps, validations)
    assert points[-1] == steps
    assert len(points) == min(steps, validations)
    gaps = [b - a for a, b in itertools.pairwise((0, *points))]
    assert max(gaps) - min(gaps) <= 1
