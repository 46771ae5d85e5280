"""Runs a study under a budget: opens it, prepares its data, works, and says how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search.engine.assignments import Ended
from search.engine.claims import FINGERPRINT, Claims
from search.engine.observer import OneAtATime, RunObserver, RunOutcome, StudyStart
from search.engine.run_end import report_end, used_up
from search.engine.stopping import INTERRUPTED, StopFlag, stop_on_signals
from search.errors import InputError
from search.files import Files
from search.rows import StudyRow
from search.settings import Settings, settings
from search.spec.budget import Budget, training_flops
from search.spec.limits import limits_of
from search.spec.listed import is_listed, n_stacks
from search.spec.space import Space
from search.tasks.objective import ObjectiveConfig
from search.training.training_key import training_key
from search.workers.team import work_together
from search.workers.worker import Tally, Worker

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec
    from search.engine.own_objective import Objective
    from search.slots.runners import InProcessRunner, SlotRunner, TrialRunner
    from search.spec.study import StudySpec
    from search.store.repo import Store
    from search.strategies.base import Strategy
    from search.workers.contract import TrainingStore

MOST_FLOPS = 2**63 - 1
"""The largest integer that both databases hold."""


@dataclass(frozen=True)
class Prepared:
    """What a study's trials share: the hash of its data and facts about it for people."""

    fingerprint: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def run_study(
    store: Store,
    study: StudySpec,
    budget: Budget,
    *,
    name: str | None = None,
    in_process: bool = False,
    objective: Objective | None = None,
    observer: RunObserver | None = None,
    stop: StopFlag | None = None,
    again: str = "the same command",
    derived_from: tuple[int, str] | None = None,
    workers: int | None = None,
) -> RunOutcome:
    """Runs or continues a study until its budget is used up.

    Args:
        store: Where everything is kept.
        study: The study.
        budget: What may be spent, earlier runs of the study included.
        name: The study's name; by default it derives from its spec.
        in_process: Train in this process instead of one of its own.
        objective: The function behind a study of kind ``objective``.
        observer: Told what happens.
        stop: Ends the run from outside; Ctrl-C and SIGTERM set it too.
        again: How the user continues after an interruption, for the message.
        derived_from: Id of the study that a new one is derived from, and what for.
        workers: Trials to train at once; by default one, or one on each GPU.

    Raises:
        InputError: The data is missing or too little, the name is bound to another spec, the data
            is not what the study was begun with, or an own objective is missing.
        StoreError: The store cannot be used.
    """
    from search.engine.own_objective import ObjectiveRunner

    observer = OneAtATime(observer or RunObserver())
    stop = stop or StopFlag()
    local = settings()
    check_runnable(study, budget, objective)
    row, prepared = open_study(store, study, budget, name, derived_from)
    if isinstance(prepared, Ended):
        return report_end(store, row, Tally(ended=prepared), stop, observer, again)
    runners: Sequence[TrialRunner] = (
        [ObjectiveRunner(objective, study.objective, needed_metrics(study))]
        if objective is not None
        else make_training_runners(
            study, local, Files.of(store.address, local), workers, in_process=in_process
        )
    )
    worker_id = store.register_worker(
        slots=len(runners), devices=[runner.device for runner in runners]
    )
    team = [
        make_worker(store, row, study, budget, worker_id, prepared, runner, observer, stop, local)
        for runner in runners
    ]
    try:
        with stop_on_signals(stop, observer.message):
            observer.study_started(start_of(store, row, study, budget, prepared))
            work_together([worker.work for worker in team], stop)
    except KeyboardInterrupt:
        stop.ask(INTERRUPTED)
    finally:
        for runner in runners:
            runner.close()
        store.close_worker(worker_id)
    return report_end(store, row, Tally.of([w.tally for w in team]), stop, observer, again)


def queue_study(store: Store, study: StudySpec, budget: Budget, name: str | None) -> StudyRow:
    """Stores a study and the budget it is to have, for workers to train.

    Raises:
        InputError: As `run_study` raises, or its code is in a script, where no worker finds it.
        StoreError: The store cannot be used.
    """
    check_runnable(study, budget, None)
    if uses_local_classes(study):
        raise InputError("its mixers or its task come from a script; run it from there")
    row, _ = open_study(store, study, budget, name)
    return row


def open_study(
    store: Store,
    study: StudySpec,
    budget: Budget,
    name: str | None,
    derived_from: tuple[int, str] | None = None,
) -> tuple[StudyRow, Prepared | Ended]:
    """Opens or creates a study and notes its budget; with its data, or why nothing may start.

    Raises:
        InputError: As `run_study` raises.
    """
    cache_dir = settings().cache_dir
    strategy_of(study)  # Refused before anything is stored.
    name = name or study.default_name
    is_new = all(known.name != name for known in store.studies())
    # A new study whose data cannot be used leaves no row behind.
    prepared = prepare(study, cache_dir) if is_new else None
    row = store.ensure_study(name, study, plugins_of(study), derived_from=derived_from)
    if used := used_up(store, row, study, budget):
        return row, used
    prepared = prepared or prepare(study, cache_dir)
    refuse_other_data(row, prepared)
    store.change_state(row.id, "running")  # a run lifts a pause; what was stopped is refused
    store.ask_budget(row.id, budget.text)
    return store.study(row.id), prepared


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


def strategy_of(study: StudySpec) -> Strategy:
    """Builds the study's strategy.

    Raises:
        InputError: The sampler refuses the value of an option.
    """
    from search.strategies import make_strategy

    try:
        levels = study.baselines.reference, study.baselines.cheap
        return make_strategy(study.strategy.name, study.strategy.options, study.seed, levels)
    except ValueError as error:
        raise InputError(f"strategy.options: {error}") from None


def check_runnable(study: StudySpec, budget: Budget, objective: Objective | None) -> None:
    """Refuses what could not run.

    Raises:
        InputError: An own objective is missing, is another one, or has no FLOPs to count.
    """
    if not isinstance(study.task, ObjectiveConfig):
        if objective is not None:
            raise InputError("objective=: the study has a task of its own; give one of the two")
        return
    if objective is None:
        raise InputError(
            f"the study's objective is the function {study.task.name!r} of a script; "
            "run it from there with search.run(objective=...)"
        )
    if budget.unit == "flops":
        raise InputError(
            "a budget in FLOPs needs a task; give an own objective a number of trials or a time"
        )


def needed_metrics(study: StudySpec) -> tuple[str, ...]:
    """Returns the metrics that objectives and limits name."""
    judged = [*study.measures, *(limit.measure for limit in limits_of(study))]
    return tuple(dict.fromkeys(m.name for m in judged if m.origin == "metric"))


def plugins_of(study: StudySpec) -> dict[str, tuple[str, str]]:
    """Returns distribution and version of every mixer that the study may build."""
    from mixers.registry import mixer_registry
    from search.spec.baselines import baselines

    configs = [
        *Space.product(study).choices.values(),
        *(m for b in baselines(study) for m in b.mixers),
    ]
    found = {}
    for kind in sorted({config.kind for config in configs}):
        entry = mixer_registry.get(kind)
        found[kind] = (entry.distribution, entry.version)
    return found


def flops_of(study: StudySpec, spec: EncoderSpec) -> int:
    """Returns the training FLOPs of an architecture; none are known for an own objective.

    Raises:
        InputError: They are more than the store can count.
    """
    if isinstance(study.task, ObjectiveConfig):
        return 0
    from mixers.cost import count_flops

    training = study.training
    flops = training_flops(count_flops(spec), steps=training.steps, batch_size=training.batch_size)
    if flops > MOST_FLOPS:
        raise InputError(
            f"training.steps: {training.steps} steps of {training.batch_size} sequences take "
            f"{flops:.1e} FLOPs a trial, more than can be counted; lower one of them"
        )
    return flops


def prepare(study: StudySpec, cache_dir: Path) -> Prepared:
    """Reads and tokenises the data once, so that faults of the data show before any trial.

    Raises:
        InputError: The data is missing, unreadable or too little, or the cache cannot be made.
    """
    if isinstance(study.task, ObjectiveConfig):
        return Prepared(study.task.source_sha256, {"objective": study.task.name})
    from search.tasks.base import build_task

    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cache folder {cache_dir}: {error.strerror}; set SEARCH_CACHE_DIR to another"
        ) from None
    task = build_task(study.task, seed=study.seed, cache_dir=cache_dir)
    task.prepare()
    return Prepared(task.fingerprint, task.describe())


def refuse_other_data(row: StudyRow, prepared: Prepared) -> None:
    """Refuses to go on with other data than the study was begun with.

    Raises:
        InputError: The hashes differ.
    """
    begun = row.attrs.get(FINGERPRINT)
    if begun is not None and begun != prepared.fingerprint:
        raise InputError(
            f"study {row.name!r} was begun with other data ({begun[:8]}, now "
            f"{prepared.fingerprint[:8]}); restore it, or start another study with --name"
        )


def refuse_other_plugins(row: StudyRow, study: StudySpec) -> None:
    """Refuses to train with other versions of mixer packages than the study was asked for with.

    Raises:
        InputError: A package has another version here, or the mixer comes from another one.
    """
    from mixers.registry import OWN_DISTRIBUTION, normalise

    for kind, here in plugins_of(study).items():
        asked = row.plugins.get(kind, here)
        if asked != here and normalise(here[0]) != OWN_DISTRIBUTION:
            raise InputError(
                f"mixer {kind} is of {' '.join(here)} here, the study was asked for with "
                f"{' '.join(asked)}; install that, or ask for the study again with the new one"
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
        study, str(local.cache_dir), threads, placement.device, files, local.checkpoint_s
    )
    return [InProcessRunner(configs)]


def uses_local_classes(study: StudySpec) -> bool:
    """Says whether a mixer or the task was registered by a script: no child could import it."""
    from mixers.registry import LOCAL

    kinds = {*plugins_of(study), study.task.kind}
    return any(kind.startswith(f"{LOCAL}.") for kind in kinds)


def start_of(
    store: Store, row: StudyRow, study: StudySpec, budget: Budget, prepared: Prepared
) -> StudyStart:
    """Describes the run at its beginning."""
    is_own = isinstance(study.task, ObjectiveConfig)
    return StudyStart(
        name=row.name,
        study_id=row.id,
        store=store.url,
        budget=budget,
        spent=budget.spent(store.counts(row.id)),
        n_trials=row.n_trials,
        space_size=n_stacks(study) if is_listed(study) else Space.of(study).size,
        objective=study.objective,
        unit=study.unit,
        direction=study.direction,
        steps=0 if is_own else study.training.steps,
        data=prepared.facts,
    )
