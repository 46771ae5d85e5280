"""One training run with Lightning, reduced to what a trial needs.

Lightning moves model and batches, runs the precision, the clipping and the schedule; everything
that a trial does not need is off (logger, checkpoints, progress bar, summary, sanity check). The
step never waits for the device: losses stay there as a list and are read together at the reading
points and every ``CHECK_EVERY`` steps, where a loss that is not finite ends the run.

A run may go on from the state of an earlier one, and then makes bitwise the same steps: batches are
a function of the step, and model, optimiser, schedule and random generators are in the state.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from search.messages import Message, Progress, Report
from search.training.checkpointing import Keeper, Saved, TrainingState
from search.training.lightning_setup import kept_interrupt_handler, quiet_lightning, trainer
from search.training.random_states import random_states, set_random_states
from search.training.recipe import build_optimizer, reading_steps
from search.training.stepclock import StepClock

if TYPE_CHECKING:
    from search.devices import Precision
    from search.messages import Outcome
    from search.spec.study import TrainingSpec
    from search.tasks.base import Task

CHECK_EVERY = 50
Metrics = dict[str, float]


@dataclass
class Training:
    """What came of a training run.

    ``stopped`` and ``diverged`` hold the reason in words, or None; ``pruned`` says that it ended
    where it was asked to, short of its end. ``selection`` is the last reading of the selection
    split, whose step is ``read_at``.
    """

    steps: int = 0
    pruned: bool = False
    stopped: str | None = None
    diverged: str | None = None
    selection: Metrics = field(default_factory=dict)
    read_at: int = 0
    step_seconds: list[float] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """How the trial ended, in one word."""
        if self.diverged is not None:
            return "diverged"
        if self.stopped is not None:
            return "stopped"
        return "pruned" if self.pruned else "completed"

    def reason(self, planned: int) -> str:
        """Why it ended before its planned steps, in words."""
        cut = f"cut at step {self.steps} of {planned}" if self.pruned else ""
        return self.diverged or self.stopped or cut

    @classmethod
    def of(cls, saved: Saved | None) -> Training:
        """What had come of a run where it was saved; an empty one for None."""
        if saved is None:
            return cls()
        state, read = saved.state, saved.facts.selection
        return cls(
            steps=state.step,
            selection={} if read is None else dict(read.metrics),
            read_at=0 if read is None else read.step,
            step_seconds=list(state.step_seconds),
        )


class TrainingBatches:
    """The task's batches by step, as a sized iterable; no loader, no worker processes."""

    def __init__(self, task: Task[Any], *, steps: range, seed: int, batch_size: int) -> None:
        self.task = task
        self.steps = steps
        self.seed = seed
        self.batch_size = batch_size

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for step in self.steps:
            yield self.task.train_batch(step, seed=self.seed, batch_size=self.batch_size)


class TrainingModule(pl.LightningModule):
    """Trains a task's model and reads it at the planned steps."""

    def __init__(
        self,
        model: nn.Module,
        task: Task[Any],
        training: TrainingSpec,
        *,
        end: int,
        readings: frozenset[int],
        read: Callable[[nn.Module], Metrics],
        report: Callable[[Message], None],
        should_stop: Callable[[], str | None],
        keeper: Keeper | None,
        give_way: Callable[[], bool],
        state: TrainingState | None,
        outcome: Training,
    ) -> None:
        super().__init__()
        self.model = model
        self.task = task
        self.spec = training
        self.end = end
        self.read = read
        self.report = report
        self.should_stop = should_stop
        self.keeper = keeper
        self.give_way = give_way
        self.outcome = outcome
        self._state = state
        self._start = outcome.steps
        self._readings = readings
        self._unread: list[Tensor] = []
        self._losses: list[float] = []
        self._earlier_seconds = outcome.step_seconds
        self._clock: StepClock | None = None

    def configure_optimizers(self) -> Any:
        """AdamW with its schedule by step."""
        optimizer, schedule = build_optimizer(self.model, self.spec)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    def on_train_start(self) -> None:
        """Takes up the state of an earlier run, and starts the step clock."""
        self.model.train()
        self._clock = StepClock(self.device)
        if self._state is not None:
            self._take_up(self._state)
            self._state = None
        self._clock.resume()

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        """The task's loss on one batch."""
        loss: Tensor = self.task.loss(self.model, batch)
        return loss

    def configure_gradient_clipping(
        self,
        optimizer: Any,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clips the norm of all gradients together.

        Lightning's own clipping refuses fused optimisers under autocast, for the sake of loss
        scaling; bfloat16 has none.
        """
        if self.spec.gradient_clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.spec.gradient_clip)

    def on_train_batch_end(
        self, outputs: Tensor | Mapping[str, Any] | None, batch: Any, batch_idx: int
    ) -> None:
        """Counts the step, reads where a reading is due, and polls for a stop."""
        assert self._clock is not None
        assert isinstance(outputs, Mapping)
        self._clock.tick()
        self._unread.append(outputs["loss"])
        step = self.outcome.steps = self._start + batch_idx + 1
        reading = step in self._readings
        if reading or len(self._unread) >= CHECK_EVERY:
            self._check(step)
        if reading and self.outcome.diverged is None:
            self._read(step)
        if self.outcome.diverged is None and step < self.end:
            self.outcome.stopped = self.should_stop()
        self._keep(step)
        saved = None if self.keeper is None else self.keeper.step
        self.report(Progress(step=step, steps=self.spec.steps, checkpoint_step=saved))
        if self.outcome.diverged or self.outcome.stopped:
            self.trainer.should_stop = True
        elif self.give_way():
            self._clock.resume()

    def on_train_end(self) -> None:
        """Reads the clock while the device is still this training's."""
        if self._clock is not None:
            self.outcome.step_seconds = self._step_seconds()

    def _step_seconds(self) -> list[float]:
        assert self._clock is not None
        made = self.outcome.steps - self._start
        return self._earlier_seconds + self._clock.seconds(skip=min(5, made // 2))

    def _keep(self, step: int) -> None:
        """Saves where it is due: by time, before a stop, and where another attempt may go on."""
        if self.keeper is None or self.outcome.diverged or step == self.spec.steps:
            return
        if step == self.end or self.outcome.stopped or self.keeper.is_due():
            assert self._clock is not None
            self.keeper.save(self._state_after(step))
            self._clock.resume()

    def _state_after(self, step: int) -> TrainingState:
        optimizer, schedule = self.trainer.optimizers[0], self.trainer.lr_scheduler_configs[0]
        return TrainingState(
            step=step,
            model=self.model.state_dict(),
            optimizer=optimizer.state_dict(),
            schedule=schedule.scheduler.state_dict(),
            random=random_states(self.device),
            unread=torch.stack(self._unread) if self._unread else torch.empty(0),
            losses=list(self._losses),
            step_seconds=self._step_seconds(),
        )

    def _take_up(self, state: TrainingState) -> None:
        self.trainer.optimizers[0].load_state_dict(state.optimizer)
        self.trainer.lr_scheduler_configs[0].scheduler.load_state_dict(state.schedule)
        self._unread = list(state.unread.to(self.device).unbind())
        self._losses = list(state.losses)
        # Last, so that nothing draws from the generators before the next step does.
        set_random_states(state.random, self.device)

    def _check(self, step: int) -> None:
        losses = torch.stack(self._unread).tolist()
        for offset, loss in enumerate(losses, start=step - len(losses) + 1):
            if not math.isfinite(loss):
                self.outcome.diverged = f"the training loss is {loss} at step {offset}"
                break
        self._losses += losses
        self._unread.clear()

    def _read(self, step: int) -> None:
        assert self._clock is not None
        metrics = self.read(self.model)
        self.model.train()
        bad = next((name for name, value in metrics.items() if not math.isfinite(value)), None)
        if bad is not None:
            self.outcome.diverged = f"{bad} on selection is {metrics[bad]} at step {step}"
            return
        mean = math.fsum(self._losses) / len(self._losses)
        self._losses.clear()
        self.report(Report(step=step, split="train", metrics={"loss": mean}))
        self.report(Report(step=step, split="selection", metrics=metrics))
        self.outcome.selection = metrics
        self.outcome.read_at = step
        self._clock.resume()


def train(
    model: nn.Module,
    task: Task[Any],
    training: TrainingSpec,
    *,
    seed: int,
    device: str,
    precision: Precision,
    read: Callable[[nn.Module], Metrics],
    report: Callable[[Message], None],
    should_stop: Callable[[], str | None],
    rungs: Iterable[int] = (),
    until: int | None = None,
    keeper: Keeper | None = None,
    saved: Saved | None = None,
    give_way: Callable[[], bool] = lambda: False,
) -> Training:
    """Trains ``model`` in place and says how it ended.

    Args:
        model: the task's model; it is on ``device`` afterwards.
        task: gives the batch of each step and the loss.
        training: the recipe.
        seed: decides order and masking of the batches; the caller seeds the global generators,
            from which dropout draws.
        device: ``cpu`` or ``cuda:i``.
        precision: ``32`` or ``bf16`` (autocast).
        read: metrics of the selection split, called at the reading steps.
        report: receives progress after each step and metrics after each reading.
        should_stop: asked after each step; a reason ends the run there.
        rungs: steps after which the selection split is read besides the recipe's own.
        until: ends the run after that step; None = train to the end.
        keeper: saves the run where it is due; None = nothing is saved.
        saved: what an earlier run left, to go on from.
        give_way: called between steps; lets others have the device for a while, and says whether
            it did.
    """
    end = training.steps if until is None else min(until, training.steps)
    outcome = Training.of(saved)
    if saved is not None:
        model.load_state_dict(saved.state.model)
    module = TrainingModule(
        model,
        task,
        training,
        end=end,
        readings=frozenset({*reading_steps(training.steps, training.validations), *rungs, end}),
        read=read,
        report=report,
        should_stop=should_stop,
        keeper=keeper,
        give_way=give_way,
        state=None if saved is None else saved.state,
        outcome=outcome,
    )
    batches = TrainingBatches(
        task, steps=range(outcome.steps, end), seed=seed, batch_size=training.batch_size
    )
    with quiet_lightning(), kept_interrupt_handler():
        try:
            if len(batches):
                trainer(device, precision).fit(module, train_dataloaders=batches)
        finally:
            # Trainer and module hold each other; without this their memory waits for chance.
            module.trainer = None
    model.to(torch.device(device))
    outcome.pruned = end < training.steps
    return outcome


def autocast(device: str, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """The number format of a training, for whatever else runs the model."""
    if precision == "32":
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)
