"""One training run with Lightning, reduced to what a trial needs.

Lightning moves model and batches, runs the precision, the clipping and the schedule; everything
that a trial does not need is off (logger, checkpoints, progress bar, summary, sanity check). The
step never waits for the device: losses stay there as a list and are read together at the reading
points and every ``CHECK_EVERY`` steps, where a loss that is not finite ends the run.
"""

from __future__ import annotations

import contextlib
import logging
import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from torch import Tensor, nn

from search.messages import Message, Progress, Report
from search.recipe import build_optimizer, reading_steps
from search.stepclock import StepClock

if TYPE_CHECKING:
    from search.devices import Precision
    from search.study import TrainingSpec
    from search.tasks.base import Task

CHECK_EVERY = 50
Metrics = dict[str, float]


@dataclass
class Training:
    """What came of a training run.

    ``stopped`` and ``diverged`` hold the reason in words, or None. ``selection`` is the last
    reading of the selection split, whose step is ``read_at``.
    """

    steps: int = 0
    stopped: str | None = None
    diverged: str | None = None
    selection: Metrics = field(default_factory=dict)
    read_at: int = 0
    step_seconds: list[float] = field(default_factory=list)


class TrainingBatches:
    """The task's batches by step, as a sized iterable; no loader, no worker processes."""

    def __init__(self, task: Task[Any], *, steps: int, seed: int, batch_size: int) -> None:
        self.task = task
        self.steps = steps
        self.seed = seed
        self.batch_size = batch_size

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for step in range(self.steps):
            yield self.task.train_batch(step, seed=self.seed, batch_size=self.batch_size)


class TrainingModule(pl.LightningModule):
    """Trains a task's model and reads it at the planned steps."""

    def __init__(
        self,
        model: nn.Module,
        task: Task[Any],
        training: TrainingSpec,
        *,
        read: Callable[[nn.Module], Metrics],
        report: Callable[[Message], None],
        should_stop: Callable[[], str | None],
    ) -> None:
        super().__init__()
        self.model = model
        self.task = task
        self.spec = training
        self.read = read
        self.report = report
        self.should_stop = should_stop
        self.outcome = Training()
        self._readings = frozenset(reading_steps(training.steps, training.validations))
        self._unread: list[Tensor] = []
        self._losses: list[float] = []
        self._clock: StepClock | None = None

    def configure_optimizers(self) -> Any:
        """AdamW with its schedule by step."""
        optimizer, schedule = build_optimizer(self.model, self.spec)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    def on_train_start(self) -> None:
        """Starts the step clock."""
        self.model.train()
        self._clock = StepClock(self.device)
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
        step = self.outcome.steps = batch_idx + 1
        reading = step in self._readings
        if reading or len(self._unread) >= CHECK_EVERY:
            self._check(step)
        if reading and self.outcome.diverged is None:
            self._read(step)
        self.report(Progress(step=step, steps=self.spec.steps))
        if self.outcome.diverged is None and step < self.spec.steps:
            self.outcome.stopped = self.should_stop()
        if self.outcome.diverged or self.outcome.stopped:
            self.trainer.should_stop = True

    def on_train_end(self) -> None:
        """Reads the clock while the device is still this training's."""
        if self._clock is not None:
            self.outcome.step_seconds = self._clock.seconds(skip=min(5, self.outcome.steps // 2))

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
    """
    module = TrainingModule(
        model, task, training, read=read, report=report, should_stop=should_stop
    )
    batches = TrainingBatches(task, steps=training.steps, seed=seed, batch_size=training.batch_size)
    with quiet_lightning(), kept_interrupt_handler():
        try:
            _trainer(training, device, precision).fit(module, train_dataloaders=batches)
        finally:
            # Trainer and module hold each other; without this their memory waits for chance.
            module.trainer = None
    model.to(torch.device(device))
    return module.outcome


def autocast(device: str, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """The number format of a training, for whatever else runs the model."""
    if precision == "32":
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)


def _trainer(training: TrainingSpec, device: str, precision: Precision) -> pl.Trainer:
    target = torch.device(device)
    trainer = pl.Trainer(
        accelerator="gpu" if target.type == "cuda" else "cpu",
        devices=[target.index or 0] if target.type == "cuda" else 1,
        precision="bf16-mixed" if precision == "bf16" else "32-true",
        # Inside a SLURM job Lightning would otherwise check and use the job's settings.
        plugins=[LightningEnvironment()],
        max_epochs=1,
        use_distributed_sampler=False,
        barebones=True,
    )
    # Signals belong to whoever owns the process. Lightning would turn SIGTERM into an exit, and
    # its restoring of all handlers would undo those that Python does not know, as faulthandler's.
    trainer._signal_connector.register_signal_handlers = lambda: None  # type: ignore[method-assign]
    return trainer


@contextlib.contextmanager
def quiet_lightning() -> Iterator[None]:
    """Silences Lightning's remarks on how it was set up, and restores the loggers."""
    names = (
        "pytorch_lightning",
        "pytorch_lightning.utilities.rank_zero",
        "lightning_fabric",
        "lightning_fabric.utilities.rank_zero",
    )
    levels = {name: logging.getLogger(name).level for name in names}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"pytorch_lightning\..*|lightning_fabric\..*")
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)


@contextlib.contextmanager
def kept_interrupt_handler() -> Iterator[None]:
    """Gives back the handler of Ctrl-C, which Lightning replaces for good when it sees one.

    Raises:
        KeyboardInterrupt: in place of the ``sys.exit(1)`` into which Lightning turns it.
    """
    on_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as exit_:
        if isinstance(exit_.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    finally:
        if on_main and handler is not None:
            signal.signal(signal.SIGINT, handler)
