"""Joins a study, its strategy, the store and what trains to workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from search.engine.claims import Claims
from search.engine.needs import flops_of, plugins_of, strategy_of, uses_local_classes
from search.errors import InputError
from search.files import Files
from search.training.training_key import training_key
from search.workers.worker import Worker

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec
    from search.engine.observer import RunObserver
    from search.engine.preparing import Prepared
    from search.engine.stopping import StopFlag
    from search.rows import StudyRow
    from search.settings import Settings
    from search.slots.runners import InProcessRunner, SlotRunner, TrialRunner
    from search.spec.budget import Budget
    from search.spec.study import StudySpec
    from search.strategies.base import Strategy
    from search.workers.contract import TrainingStore


def make_worker(
    store: TrainingStore,
    row: StudyRow,
    study: StudySpec,
    budget: Budget,
    worker_id: int,
    prepared: Prepared,
    runner: TrialRunner,
    observer: RunObserver,
    stop: StopFlag,
    local: Settings,
) -> Worker:
    """Joins a study, the store and what trains to a worker."""
    return Worker(
        store,
        row.id,
        make_claims(store, row, study, strategy_of(study), budget, worker_id, prepared),
        runner,
        budget=budget,
        observer=observer,
        stop=stop,
        settings=local,
        files=Files.of(store.address, local),
    )


def make_claims(
    store: TrainingStore,
    row: StudyRow,
    study: StudySpec,
    strategy: Strategy,
    budget: Budget,
    worker_id: int,
    prepared: Prepared,
) -> Claims:
    """Joins the study's strategy with the store."""
    plugins = plugins_of(study)

    def key_of(spec: EncoderSpec, recipe: Mapping[str, float]) -> str:
        return training_key(
            study.with_recipe(recipe), spec, fingerprint=prepared.fingerprint, plugins=plugins
        )

    return Claims(
        store,
        row,
        study,
        strategy=strategy,
        budget=budget,
        worker=worker_id,
        key_of=key_of,
        flops_of=lambda spec: flops_of(study, spec),
        fingerprint=prepared.fingerprint,
    )


def make_training_runners(
    study: StudySpec,
    local: Settings,
    files: Files | None = None,
    workers: int | None = None,
    *,
    in_process: bool = False,
) -> Sequence[SlotRunner | InProcessRunner]:
    """Returns what trains: a process for each slot, or this process.

    Raises:
        InputError: There are not so many devices, or more than one is to train in this process.
    """
    from search.slots.runners import (
        ConfigMaker,
        InProcessRunner,
        make_slots,
        placements,
        slot_runner,
    )

    if not (in_process or uses_local_classes(study)):
        return [slot_runner(slot, study, local, files) for slot in make_slots(local, workers)]
    if workers not in (None, 1):
        raise InputError(
            f"--workers {workers}: this study trains in one process, as it asks to or since its "
            "classes come from a script; leave --workers out"
        )
    placement = placements(1)[0]
    threads = local.threads or placement.threads
    configs = ConfigMaker(
        study,
        str(local.cache_dir),
        threads,
        placement.device,
        files,
        local.checkpoint_s,
        local.compile,
    )
    return [InProcessRunner(configs)]
