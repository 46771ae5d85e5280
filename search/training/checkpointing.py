"""What a trial saves so that another attempt goes on as if nothing had happened, and when."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from mixers.config import FrozenModel
from search.messages import CheckpointPlan, Message, ProbeReading, Report, Warned
from search.rows import DocumentSums
from search.tasks.base import Split
from search.training.checkpoints import Checkpoint, NotPlainError, latest, save
from search.training.failure import one_line
from search.training.stages import Stages


@dataclass(frozen=True)
class TrainingState:
    """A training between two steps: what the next step depends on, and what is not yet reported.

    Attributes:
        step: Optimiser steps made.
        model: The model's state.
        optimizer: The optimiser's state.
        schedule: The learning-rate schedule's state.
        random: The global generators.
        unread: Losses of the newest steps, which nobody has looked at, in one tensor.
        losses: Losses that were looked at since the last reading.
        step_seconds: Times of steps.
    """

    step: int
    model: dict[str, Any]
    optimizer: dict[str, Any]
    schedule: dict[str, Any]
    random: dict[str, Any]
    unread: Tensor
    losses: list[float]
    step_seconds: list[float]


class TrialFacts(FrozenModel):
    """What a trial knows besides its training's state.

    ``reports`` are the readings so far, ``seconds`` and ``stages`` what they and the training took.
    """

    seconds: float
    stages: dict[str, float]
    peak_memory_bytes: int
    probes: tuple[ProbeReading, ...]
    documents: dict[Split, DocumentSums]
    reports: tuple[Report, ...]

    @property
    def selection(self) -> Report | None:
        """The newest reading of the selection split."""
        read = [report for report in self.reports if report.split == "selection"]
        return read[-1] if read else None


@dataclass(frozen=True)
class Saved:
    """What an earlier attempt left."""

    state: TrainingState
    facts: TrialFacts


class Keeper:
    """Saves a trial by time, and finds what an earlier attempt saved.

    A checkpoint that cannot be written costs no training: the trial goes on, says so once, and
    tries again when the next one is due.

    Args:
        plan: Where, how often and under which key.
        stages: Where the time is written down.
        facts: Gives the trial's own part of a checkpoint.
        report: Told of what went wrong.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        plan: CheckpointPlan,
        stages: Stages,
        facts: Callable[[], TrialFacts],
        report: Callable[[Message], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan = plan
        self.stages = stages
        self.facts = facts
        self.report = report
        self.clock = clock
        self.folder = Path(plan.folder)
        self.step: int | None = None
        self._saved_at = clock()
        self._warned = False

    def find(self) -> Saved | None:
        """Returns the newest sound checkpoint of this training."""
        with self.stages.time("checkpoint"):
            found = latest(self.folder, self.plan.key, warn=self._warn)
        if found is None:
            return None
        self.step = found.step
        # Facts were JSON: lists stand for tuples there.
        facts = TrialFacts.model_validate(found.facts, strict=False)
        return Saved(TrainingState(step=found.step, **found.tensors), facts)

    def warn_of_lost_steps(self) -> None:
        """Says that steps are made again which an earlier attempt made and saved elsewhere."""
        found = self.step or 0
        if found < self.plan.promised:
            self._warn(
                f"the checkpoint of step {self.plan.promised} is not in {self.folder}; the trial "
                f"is trained again from step {found}"
            )

    def is_due(self) -> bool:
        """Whether the newest checkpoint is older than planned."""
        return self.clock() - self._saved_at >= self.plan.every_s

    def save(self, state: TrainingState) -> None:
        """Writes a checkpoint, unless the disk refuses."""
        with self.stages.time("checkpoint"):
            self._save(state)
        self._saved_at = self.clock()

    def _save(self, state: TrainingState) -> None:
        tensors = {
            field.name: getattr(state, field.name)
            for field in dataclasses.fields(state)
            if field.name != "step"
        }
        facts = self.facts().model_dump(mode="json")
        try:
            save(self.folder, self.plan.key, Checkpoint(state.step, facts, tensors))
        except OSError as error:
            why = error.strerror or type(error).__name__
            self._warn_of_none(f"step {state.step} ({why}: {self.folder})", "free some space")
        except NotPlainError as error:
            way_out = "keep what a mixer remembers in buffers"
            self._warn_of_none(f"step {state.step} ({error})", way_out)
        else:
            self.step = state.step
            self._warned = False

    def _warn_of_none(self, where: str, way_out: str) -> None:
        if not self._warned:
            self._warn(
                f"no checkpoint could be written at {where}; the training goes on and tries again, "
                f"{way_out}"
            )
        self._warned = True

    def _warn(self, text: str) -> None:
        self.report(Warned(text=one_line(text)))
