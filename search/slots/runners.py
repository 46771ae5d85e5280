"""Where a claimed trial runs: in a warm training process on some device, or in this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from search.engine.assignments import Assignment, splits_of
from search.messages import (
    CheckpointPlan,
    Message,
    PlanTiming,
    TrialConfig,
    TrialFailure,
    TrialResult,
)
from search.tasks.base import Split

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec
    from search.devices import Placement
    from search.files import Files
    from search.settings import Settings
    from search.slots.slot import Slot
    from search.spec.study import StudySpec

OnMessage = Callable[[Message], None]
ShouldStop = Callable[[], str | None]


class TrialRunner(Protocol):
    """Runs one trial at a time; ``device`` says where."""

    device: str

    def run(
        self, assignment: Assignment, *, on_message: OnMessage, should_stop: ShouldStop
    ) -> TrialResult | TrialFailure:
        """Runs a trial to its end; whatever the trial does, this returns or is interrupted."""

    def close(self) -> None:
        """Lets go of what the trials needed."""


@dataclass(frozen=True)
class ConfigMaker:
    """Makes the frozen config of each trial of a study."""

    study: StudySpec
    cache_dir: str
    threads: int = 1
    device: str = "cpu"
    files: Files | None = None
    checkpoint_s: float = 60.0
    compile: bool = False

    def of(self, assignment: Assignment) -> TrialConfig:
        """Returns the config of a claimed trial."""
        return self.make(
            assignment.spec,
            seed=assignment.seed,
            splits=splits_of(assignment.claim.phase),
            recipe=assignment.recipe,
            checkpoints=self._checkpoints(assignment),
            until=assignment.until,
        )

    def _checkpoints(self, assignment: Assignment) -> CheckpointPlan | None:
        if self.files is None:
            return None
        return CheckpointPlan(
            folder=str(self.files.checkpoints_of(assignment.claim.trial_id)),
            every_s=self.checkpoint_s,
            key=f"{assignment.spec.arch_id} {assignment.training_key} {assignment.seed}",
            promised=assignment.claim.promoted_from or 0,
        )

    def make(
        self,
        spec: EncoderSpec,
        *,
        seed: int,
        splits: tuple[Split, ...] = ("selection",),
        recipe: Mapping[str, float] | None = None,
        checkpoints: CheckpointPlan | None = None,
        until: int | None = None,
    ) -> TrialConfig:
        """Returns the config of a training."""
        return TrialConfig(
            study=self.study.with_recipe(recipe or {}),
            spec=spec,
            seed=seed,
            splits=splits,
            threads=self.threads,
            device=self.device,
            cache_dir=self.cache_dir,
            checkpoints=checkpoints,
            until=until,
            compile=self.compile,
        )


class SlotRunner:
    """Runs trials in a training process of its own, which outlives them.

    Args:
        slot: The parent's end of that process; closed with this runner.
        configs: Makes the trials' configs.
        grace_s: How long a trial that is to stop may take to its next step boundary.
    """

    def __init__(self, slot: Slot, configs: ConfigMaker, grace_s: float) -> None:
        self.slot = slot
        self.device = slot.device
        self.configs = configs
        self.grace_s = grace_s

    def run(
        self, assignment: Assignment, *, on_message: OnMessage, should_stop: ShouldStop
    ) -> TrialResult | TrialFailure:
        """Hands the trial to the training process and waits for it."""
        config = self.configs.of(assignment)
        return self.slot.run(
            config, on_message=on_message, should_stop=should_stop, grace_s=self.grace_s
        )

    def time_steps(self, spec: EncoderSpec) -> PlanTiming | TrialFailure:
        """Times a few steps of an architecture in the training process."""
        return self.slot.plan(self.configs.make(spec, seed=self.configs.study.seed))

    def close(self) -> None:
        """Ends the training process."""
        self.slot.close()


class InProcessRunner:
    """Runs trials in this process: for notebooks, tests and mixers that only exist here.

    Args:
        configs: Makes the trials' configs.
    """

    def __init__(self, configs: ConfigMaker) -> None:
        self.configs = configs
        self.device = configs.device

    def run(
        self, assignment: Assignment, *, on_message: OnMessage, should_stop: ShouldStop
    ) -> TrialResult | TrialFailure:
        """Runs the trial here."""
        from search.training.trial import attempt

        return attempt(self.configs.of(assignment), report=on_message, should_stop=should_stop)

    def time_steps(self, spec: EncoderSpec) -> PlanTiming | TrialFailure:
        """Times a few steps of an architecture here."""
        from search.training.failure import failure_of
        from search.training.trial import time_steps

        try:
            return time_steps(self.configs.make(spec, seed=self.configs.study.seed))
        except Exception as error:
            return failure_of(error)

    def close(self) -> None:
        """Has nothing to close."""


def placements(
    workers: int | None, slots_per_gpu: int = 1, gpus: Sequence[int] | None = None
) -> Sequence[Placement]:
    """Returns device and threads of each slot on this machine.

    Raises:
        InputError: There are not so many devices.
    """
    from search.devices import choose_gpus, place, usable_cores, visible_devices

    devices = visible_devices()
    if gpus is not None:
        devices = choose_gpus(devices, gpus)
    return place(devices, cores=usable_cores(), workers=workers, slots_per_gpu=slots_per_gpu)


def make_slots(
    local: Settings,
    workers: int | None = None,
    *,
    slots_per_gpu: int = 1,
    gpus: Sequence[int] | None = None,
) -> Sequence[Slot]:
    """Returns the slots of this process; their training processes start when first used.

    Raises:
        InputError: There are not so many devices.
    """
    from search.slots.slot import Slot

    return [
        Slot(
            device=placement.device,
            threads=local.threads or placement.threads,
            log_dir=local.logs,
            memory_limit_bytes=local.memory_limit_bytes,
            hang_s=local.hang_s,
        )
        for placement in placements(workers, slots_per_gpu, gpus)
    ]


def slot_runner(slot: Slot, study: StudySpec, local: Settings, files: Files | None) -> SlotRunner:
    """Returns what trains a study's trials in a slot."""
    configs = ConfigMaker(
        study,
        str(local.cache_dir),
        slot.threads,
        slot.device,
        files,
        local.checkpoint_s,
        local.compile,
    )
    return SlotRunner(slot, configs, local.grace_s)
