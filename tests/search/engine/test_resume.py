"""An attempt that goes on from a checkpoint ends bit for bit where an undisturbed one does."""

import random
import signal

import numpy as np
import pytest
import torch
from fault_trials import trial_config
from toy_task import ToyModel, ToyTask

from search.messages import CheckpointPlan, Progress, Report, Resumed, TrialFailure, Warned
from search.slots.slot import Slot
from search.spec.study import TrainingSpec
from search.training.checkpointing import Keeper, TrialFacts
from search.training.loop import train
from search.training.stages import Stages
from search.training.trial import run_trial

RECIPE = TrainingSpec(steps=60, batch_size=4, learning_rate=1e-2, validations=1)


class DrawingTask(ToyTask):
    """Notes the steps whose batches were taken; its loss draws from all global generators."""

    def __init__(self):
        self.steps = []

    def train_batch(self, step, *, seed, batch_size):
        if seed == 0:
            self.steps.append(step)
        return super().train_batch(step, seed=seed, batch_size=batch_size)

    def loss(self, model, batch):
        noise = random.random() + np.random.random() if model.training else 0.0
        return super().loss(model, batch) * (1 + noise)


class Run:
    """One attempt at a training of `ToyModel`."""

    def __init__(self, folder, *, stop_after=None, until=None, every_s=1e9):
        self.messages, self.task = [], DrawingTask()
        # Whatever an attempt finds must not matter, once there is a checkpoint.
        fresh = not list(folder.iterdir())
        for seed in (torch.manual_seed, random.seed, np.random.seed):
            seed(5 if fresh else 99)
        self.model = ToyModel(dropout=0.2)
        plan = CheckpointPlan(folder=str(folder), every_s=every_s, key="toy")
        keeper = Keeper(plan, Stages(), self.facts, self.messages.append)
        saved = keeper.find()
        self.messages += [] if saved is None else saved.facts.reports
        steps = iter(range(1, RECIPE.steps + 1) if saved is None else ())
        self.outcome = train(
            self.model,
            self.task,
            RECIPE,
            seed=0,
            device="cpu",
            precision="32",
            read=self.task.read,
            report=self.messages.append,
            should_stop=lambda: "enough" if next(steps, 0) == stop_after else None,
            until=until,
            keeper=keeper,
            saved=saved,
        )

    def facts(self):
        return TrialFacts(
            seconds=0.0, stages={}, peak_memory_bytes=0, probes=(), documents={},
            reports=tuple(self.reports),
        )  # fmt: skip

    @property
    def reports(self):
        return [message for message in self.messages if isinstance(message, Report)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The undisturbed run."""
    return Run(tmp_path_factory.mktemp("whole"))


# Within the interval between two looks at the losses, at its end, and between that and a reading.
@pytest.mark.parametrize("after", [7, 50, 55])
def test__C46__stopped_and_taken_up__bitwise_the_undisturbed_run(whole, tmp_path, after):
    first = Run(tmp_path, stop_after=after)
    assert (first.outcome.outcome, first.outcome.steps) == ("stopped", after)
    second = Run(tmp_path)
    assert second.outcome.outcome == "completed"
    assert first.task.steps + second.task.steps == whole.task.steps == list(range(RECIPE.steps))
    assert second.reports == whole.reports
    assert second.outcome.selection == whole.outcome.selection
    for ours, theirs in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert len(second.outcome.step_seconds) >= len(whole.outcome.step_seconds) - 5


def test__train__until_a_step__pruned_with_its_reading_and_goes_on_from_there(whole, tmp_path):
    first = Run(tmp_path, until=20)
    assert (first.outcome.outcome, first.outcome.steps, first.outcome.read_at) == ("pruned", 20, 20)
    again = Run(tmp_path, until=20)
    assert (again.outcome.outcome, again.task.steps) == ("pruned", [])
    assert again.outcome.selection == first.outcome.selection
    last = Run(tmp_path)
    assert last.task.steps == list(range(20, 60))
    assert [report.step for report in last.reports] == [20, 20, 60, 60]
    assert last.outcome.selection == whole.outcome.selection


def test__train__checkpoints_by_time__progress_tells_the_newest(tmp_path):
    run = Run(tmp_path, every_s=0.0, until=6)
    told = [(m.step, m.checkpoint_step) for m in run.messages if isinstance(m, Progress)]
    assert told == [(step, step) for step in range(1, 7)]


@pytest.fixture(scope="module")
def slot(faults):
    with Slot("cpu", 1, faults / "logs") as slot:
        yield slot


def trial(cache, folder, fault="none", at=5, **changes):
    """A trial of two traps: one draws random numbers at every step, one breaks at step `at`."""
    plan = CheckpointPlan(folder=str(folder), every_s=0.0, key="this training")
    config = trial_config(cache, p=0.2, checkpoints=plan, **changes)
    trap = type(config.spec.blocks[0].mixer)
    mixers = [trap(fault="draws", at=1), trap(fault=fault, at=at)]
    return config.model_copy(update={"spec": config.study.encoder_spec(mixers)})


def undisturbed(config):
    """The readings and the result of the same trial in one piece, in this process."""
    told = []
    config = config.model_copy(update={"checkpoints": None})
    result = run_trial(config, report=told.append, should_stop=lambda: None)
    return [message for message in told if isinstance(message, Report)], result


def assert_same(result, told, config):
    """What was measured is what an undisturbed trial measures."""
    reports, whole = undisturbed(config)
    assert result.outcome == "completed"
    assert (result.steps, result.sequences) == (whole.steps, whole.sequences)
    assert result.evaluations == whole.evaluations
    assert result.documents == whole.documents
    assert result.probes == whole.probes
    assert [message for message in told if isinstance(message, Report)] == reports
    assert sum(result.stages.values()) <= result.seconds


@pytest.mark.parametrize(("fault", "resumed"), [("killed", 4), ("killed_in_save", 4)])
def test__slot__training_killed__the_next_attempt_ends_as_if_nothing_had_happened(
    faults, slot, tmp_path, fault, resumed
):
    outcome = slot.run(trial(faults, tmp_path, fault), lambda message: None, lambda: None)
    assert isinstance(outcome, TrialFailure)
    assert (outcome.cause, "SIGKILL" in outcome.message) == ("lost", True)
    told = []
    config = trial(faults, tmp_path)
    result = slot.run(config, told.append, lambda: None)
    assert told[0] == Resumed(step=resumed)
    assert result.resumed_step == resumed
    assert not [message for message in told if isinstance(message, Warned)]
    assert_same(result, told, config)


def test__slot__sigterm__saved_at_that_step_and_taken_up(faults, slot, tmp_path):
    told = []

    def on_message(message):
        told.append(message)
        if isinstance(message, Progress) and message.step == 1:
            slot._child.process.send_signal(signal.SIGTERM)

    config = trial(faults, tmp_path, training={"steps": 200, "validations": 2})
    config = config.model_copy(
        update={"checkpoints": config.checkpoints.model_copy(update={"every_s": 1e6})}
    )
    first = slot.run(config, on_message, lambda: None)
    assert first.outcome == "stopped"
    assert 1 <= first.steps < 200
    told = []
    second = slot.run(config, told.append, lambda: None)
    assert second.resumed_step == first.steps
    assert second.seconds > first.seconds
    assert_same(second, told, config)


def test__slot__disk_full__the_training_goes_on_and_says_so_once(faults, slot, tmp_path):
    told = []
    config = trial(faults, tmp_path, "full_disk", at=4)
    result = slot.run(config, told.append, lambda: None)
    slot.close()
    warnings = [message.text for message in told if isinstance(message, Warned)]
    assert warnings == [
        f"no checkpoint could be written at step 4 (File too large: {tmp_path}); "
        "the training goes on and tries again, free some space"
    ]
    assert_same(result, told, trial(faults, tmp_path))
    told = [m for m in told if isinstance(m, Progress)]
    assert (told[-1].step, told[-1].checkpoint_step) == (8, 3)


def test__run_trial__newest_checkpoint_broken__the_one_before_is_used(faults, tmp_path):
    config = trial(faults, tmp_path)
    told = []
    stops = iter([None] * 6 + ["stop"])
    run_trial(config, report=told.append, should_stop=lambda: next(stops))
    newest = sorted(tmp_path.iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-200])
    told = []
    result = run_trial(config, report=told.append, should_stop=lambda: None)
    assert isinstance(told[0], Warned)
    assert newest.name in told[0].text
    assert told[1] == Resumed(step=5)
    assert_same(result, told, config)


def test__run_trial__checkpoints_of_another_training__starts_from_the_beginning(faults, tmp_path):
    config = trial(faults, tmp_path)
    run_trial(config, report=lambda message: None, should_stop=lambda: None)
    other = config.checkpoints.model_copy(update={"key": "another"})
    told = []
    config = config.model_copy(update={"checkpoints": other})
    result = run_trial(config, report=told.append, should_stop=lambda: None)
    assert result.resumed_step == 0
    assert_same(result, told, config)


def test__run_trial__checkpoint_that_was_promised_is_gone__begins_again_and_says_so(
    faults, tmp_path
):
    config = trial(faults, tmp_path / "elsewhere")
    promised = config.checkpoints.model_copy(update={"promised": 5})
    config = config.model_copy(update={"checkpoints": promised})
    told = []
    result = run_trial(config, report=told.append, should_stop=lambda: None)
    assert result.resumed_step == 0
    assert told[0] == Warned(
        text=f"the checkpoint of step 5 is not in {tmp_path / 'elsewhere'}; "
        "the trial is trained again from step 0"
    )
    assert_same(result, told, config)


def test__run_trial__until_a_rung__a_result_without_test_reading_and_then_the_whole(
    faults, tmp_path
):
    config = trial(faults, tmp_path, splits=("selection", "test"))
    told = []
    result = run_trial(
        config.model_copy(update={"until": 3}), report=told.append, should_stop=lambda: None
    )
    assert (result.outcome, result.reason, result.steps) == ("pruned", "cut at step 3 of 8", 3)
    assert list(result.evaluations) == ["selection"]
    assert result.evaluations["selection"] == told[-2].metrics
    assert result.documents["selection"].n
    assert [reading.when for reading in result.probes] == ["init", "final"]
    assert result.costs.latency_s is not None
    told = []
    config = config.model_copy(update={"until": 8})
    whole = run_trial(config, report=told.append, should_stop=lambda: None)
    assert (whole.outcome, whole.resumed_step) == ("completed", 3)
    assert [reading.when for reading in whole.probes] == ["init", "final"]
    assert whole.stages["train"] > result.stages["train"]
    alone = undisturbed(config)[1]
    assert whole.evaluations == alone.evaluations
    assert whole.probes == alone.probes
    selection = [m.step for m in told if isinstance(m, Report) and m.split == "selection"]
    assert selection == [3, 4, 8]
