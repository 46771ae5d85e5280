"""Checkpoints hold tensors and plain values, whatever a mixer and its settings are made of."""

import enum
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn
from toy_task import ToyModel, ToyTask

from search.messages import CheckpointPlan, Warned
from search.spec.study import TrainingSpec
from search.training.checkpointing import Keeper, TrialFacts
from search.training.loop import train
from search.training.stages import Stages

RECIPE = TrainingSpec(steps=6, batch_size=4, learning_rate=1e-2, validations=1)


class Colour(enum.StrEnum):
    RED = "red"


class Remembering(ToyModel):
    """A model made of a spec, an enum, a path and a number of numpy."""

    def __init__(self) -> None:
        super().__init__(dropout=0.0)
        self.settings = (RECIPE, Colour.RED, Path("here"), np.float64(0.5))


class Keeping(nn.Module):
    """A layer that asks for an object of its own to be kept with its weights."""

    kept: ClassVar[object] = None

    def get_extra_state(self) -> object:
        return self.kept

    def set_extra_state(self, state: object) -> None:
        pass


def attempt(folder: Path, model: nn.Module, stop_after: int | None = None) -> tuple[list, list]:
    """Train from whatever checkpoint there is; returns the steps that were made, and messages."""
    told: list = []
    facts = TrialFacts(
        seconds=0.0, stages={}, peak_memory_bytes=0, probes=(), documents={}, reports=()
    )
    plan = CheckpointPlan(folder=str(folder), every_s=0.0, key="toy")
    keeper = Keeper(plan, Stages(), lambda: facts, told.append)
    task, steps = ToyTask(), []
    saved = keeper.find()

    def should_stop() -> str | None:
        steps.append(len(steps) + (0 if saved is None else saved.state.step) + 1)
        return "enough" if steps[-1] == stop_after else None

    train(
        model,
        task,
        RECIPE,
        seed=0,
        device="cpu",
        precision="32",
        read=task.read,
        report=told.append,
        should_stop=should_stop,
        until=None,
        keeper=keeper,
        saved=saved,
    )
    return steps, [message.text for message in told if isinstance(message, Warned)]


def test__C35__model_made_of_objects__its_training_is_taken_up_again(tmp_path):
    assert attempt(tmp_path, Remembering(), stop_after=3) == ([1, 2, 3], [])
    steps, warnings = attempt(tmp_path, Remembering())
    assert (steps[0], warnings) == (4, [])


OBJECTS = [RECIPE, Colour.RED, Path("here"), np.float64(0.5)]


@pytest.mark.parametrize("kept", OBJECTS, ids=lambda kept: type(kept).__name__)
def test__C35__object_to_be_kept_with_the_weights__named_and_the_training_goes_on(
    tmp_path, monkeypatch, kept
):
    monkeypatch.setattr(Keeping, "kept", kept)
    model = ToyModel(dropout=0.0)
    model.keeping = Keeping()
    steps, [warning] = attempt(tmp_path, model)
    assert steps[-1] == RECIPE.steps - 1  # after the last one nobody is asked
    assert f"model.keeping._extra_state is a {type(kept).__module__}" in warning
    assert "keep what a mixer remembers in buffers" in warning
    assert list(tmp_path.iterdir()) == []


def test__C35__numbers_and_tensors_kept_with_the_weights__are_taken_up_again(tmp_path, monkeypatch):
    monkeypatch.setattr(Keeping, "kept", {"seen": [torch.ones(2), 3, "words"]})
    model = ToyModel(dropout=0.0)
    model.keeping = Keeping()
    assert attempt(tmp_path, model, stop_after=3) == ([1, 2, 3], [])
    assert attempt(tmp_path, model)[0][0] == 4
