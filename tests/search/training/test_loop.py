import faulthandler
import logging
import math
import os
import random
import signal
import threading
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from toy_task import ToyModel, ToyTask

from search.messages import Progress, Report
from search.spec.study import TrainingSpec
from search.training.loop import CHECK_EVERY, Training, train
from search.training.recipe import build_optimizer, reading_steps

RECIPE = TrainingSpec(steps=40, batch_size=4, learning_rate=1e-2, validations=4)


def fit(model=None, *, recipe=RECIPE, seed=0, task=None, read=None, should_stop=lambda: None):
    task = task or ToyTask()
    messages = []
    torch.manual_seed(seed)
    model = model or ToyModel(dropout=0.1)
    outcome = train(
        model,
        task,
        recipe,
        seed=seed,
        device="cpu",
        precision="32",
        read=read or task.read,
        report=messages.append,
        should_stop=should_stop,
    )
    return outcome, messages, model


def curve(messages, split="selection"):
    reports = [m for m in messages if isinstance(m, Report) and m.split == split]
    return [(report.step, report.metrics["loss"]) for report in reports]


def bare_loop(recipe, seed):
    """The same training as a plain PyTorch loop."""
    task = ToyTask()
    torch.manual_seed(seed)
    model = ToyModel(dropout=0.1)
    optimizer, schedule = build_optimizer(model, recipe)
    readings = reading_steps(recipe.steps, recipe.validations)
    losses, selection, training = [], [], []
    model.train()
    for step in range(recipe.steps):
        batch = task.train_batch(step, seed=seed, batch_size=recipe.batch_size)
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.gradient_clip)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step + 1 in readings:
            selection.append((step + 1, task.read(model)["loss"]))
            training.append((step + 1, math.fsum(losses) / len(losses)))
            losses.clear()
            model.train()
    return selection, training, model


def test__train__beside_a_bare_loop__losses_and_weights_are_bitwise_equal():
    _, messages, model = fit(seed=3)
    selection, training, bare = bare_loop(RECIPE, 3)
    assert curve(messages) == selection
    assert curve(messages, "train") == training
    for ours, theirs in zip(model.parameters(), bare.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert selection[-1][1] < selection[0][1]


def test__train__same_seed_twice_and_another__equal_and_different():
    first, again, other = (curve(fit(seed=seed)[1]) for seed in (5, 5, 6))
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test__train__clipping__bounds_the_norm_of_every_step():
    norms = []

    def run(clip):
        norms.clear()
        step = torch.optim.AdamW.step

        def spy(optimizer, closure=None):
            loss = closure()
            grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
            norms.append(float(torch.stack([g.norm() for g in grads]).norm()))
            step(optimizer)
            return loss

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.optim.AdamW, "step", spy)
            fit(recipe=RECIPE.model_copy(update={"gradient_clip": clip}))
        return list(norms)

    free, clipped = run(0.0), run(0.05)
    assert len(free) == len(clipped) == RECIPE.steps
    assert min(free) > 0.05
    assert max(clipped) <= 0.05 * (1 + 1e-4)


def test__train__reports__come_at_the_reading_steps_with_progress_at_every_step():
    outcome, messages, _ = fit()
    assert [step for step, _ in curve(messages)] == [10, 20, 30, 40]
    progress = [m.step for m in messages if isinstance(m, Progress)]
    assert progress == list(range(1, 41))
    assert outcome.selection == {"loss": curve(messages)[-1][1]}
    assert outcome.read_at == outcome.steps == 40
    assert len(outcome.step_seconds) == 40 - 5
    assert min(outcome.step_seconds) > 0


def test__train__asked_to_stop__ends_at_that_step_and_keeps_what_was_read():
    asked = iter([None] * 24 + ["the time budget is used up"])
    outcome, messages, _ = fit(should_stop=lambda: next(asked))
    assert outcome.stopped == "the time budget is used up"
    assert outcome.steps == 25
    assert [step for step, _ in curve(messages)] == [10, 20]
    assert outcome.selection == {"loss": curve(messages)[-1][1]}
    assert outcome.read_at == 20


class Poisoned(ToyTask):
    """Gives a loss that is not finite from one step on."""

    def __init__(self, at: int, value: float) -> None:
        self.at, self.value, self.calls = at, value, 0

    def loss(self, model, batch):
        loss = super().loss(model, batch)
        if model.training:
            self.calls += 1
            if self.calls == self.at:
                return loss * self.value
        return loss


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test__C41__train__loss_not_finite__diverges_naming_the_first_such_step(value):
    outcome, messages, _ = fit(task=Poisoned(13, value))
    assert outcome.diverged == f"the training loss is {value} at step 13"
    assert outcome.steps == 20
    assert [step for step, _ in curve(messages)] == [10]


def test__C41__train__metric_not_finite__diverges_at_that_reading():
    readings = iter([1.0, 0.9, math.nan])
    outcome, messages, _ = fit(read=lambda model: {"loss": next(readings)})
    assert outcome.diverged == "loss on selection is nan at step 30"
    assert curve(messages) == [(10, 1.0), (20, 0.9)]
    assert outcome.selection == {"loss": 0.9}


def test__train__readings_far_apart__divergence_is_seen_within_the_check_interval():
    recipe = RECIPE.model_copy(update={"steps": 200, "validations": 1})
    outcome, _, _ = fit(task=Poisoned(3, math.nan), recipe=recipe)
    assert outcome.diverged == "the training loss is nan at step 3"
    assert outcome.steps == CHECK_EVERY


def test__train__step__never_reads_a_tensor_between_the_checks(monkeypatch):
    reads = []
    for name in ("item", "tolist", "__bool__", "__float__"):
        original = getattr(torch.Tensor, name)

        def spy(self, *args, _original=original, _name=name, **kwargs):
            reads.append(_name)
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(torch.Tensor, name, spy)

    class Watching(ToyTask):
        def loss(self, model, batch):
            if not steps:
                reads.clear()
            steps.append(1)
            return super().loss(model, batch)

    steps = []
    recipe = RECIPE.model_copy(update={"validations": 1})
    fit(recipe=recipe, task=Watching(), read=lambda model: {"loss": 1.0})
    assert len(steps) == RECIPE.steps
    assert reads == ["tolist"]


def global_state():
    return {
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "dtype": torch.get_default_dtype(),
        "environment": dict(os.environ),
        "signals": {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)},
        "filters": list(warnings.filters),
        "levels": {
            name: logging.getLogger(name).level
            for name in ("pytorch_lightning", "lightning_fabric", "root")
        },
        "live_threads": set(threading.enumerate()),
        "python": random.getstate(),
        "numpy": np.random.get_state()[1].tolist(),
    }


def test__train__afterwards__the_process_is_as_before(capfd):
    fit()
    before = global_state()
    capfd.readouterr()
    fit()
    assert global_state() == before
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("error", [RuntimeError("in the step"), KeyboardInterrupt(), SystemExit(3)])
def test__train__exception_in_a_step__comes_out_as_it_is_and_restores_the_process(error):
    class Broken(ToyTask):
        def loss(self, model, batch):
            raise error

    fit()
    before = global_state()
    with pytest.raises(type(error)) as caught:
        fit(task=Broken())
    assert str(caught.value) == str(error)
    assert global_state() == before


def test__train__sigterm_taken_as_a_request_to_stop__ends_at_the_step_boundary():
    asked = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: asked.append("told to end"))

    class Signalled(ToyTask):
        def train_batch(self, step, *, seed, batch_size):
            if step == 6:
                signal.raise_signal(signal.SIGTERM)
            return super().train_batch(step, seed=seed, batch_size=batch_size)

    try:
        outcome, _, _ = fit(task=Signalled(), should_stop=lambda: asked[0] if asked else None)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert outcome.stopped == "told to end"
    assert outcome.steps == 7


def test__train__inside_a_slurm_job__takes_over_no_signal(monkeypatch):
    for name in ("SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("SLURM_JOB_NAME", "search")
    numbers = (signal.SIGUSR1, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    seen = []
    fit(should_stop=lambda: seen.append([signal.getsignal(number) for number in numbers]))
    assert seen == [before] * (RECIPE.steps - 1)


def test__train__handler_that_python_does_not_know__still_there_afterwards(tmp_path):
    with (tmp_path / "stacks").open("w+") as stacks:
        faulthandler.register(signal.SIGUSR1, file=stacks)
        try:
            fit()
            signal.raise_signal(signal.SIGUSR1)
        finally:
            faulthandler.unregister(signal.SIGUSR1)
        assert "test__train__handler" in (tmp_path / "stacks").read_text()


def test__train__bf16_on_a_processor__trains_in_autocast():
    dtypes = set()

    class Watching(ToyTask):
        def loss(self, model, batch):
            dtypes.add(model(batch["ids"]).dtype)
            return super().loss(model, batch)

    task = Watching()
    outcome = train(
        ToyModel(),
        task,
        RECIPE,
        seed=0,
        device="cpu",
        precision="bf16",
        read=lambda model: {"loss": 1.0},
        report=lambda message: None,
        should_stop=lambda: None,
    )
    assert isinstance(outcome, Training)
    assert dtypes == {torch.bfloat16}
