"""Runs a study under a budget: opens it, prepares its data, works, and says how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.engine.assembly import make_training_runners, make_worker
from search.engine.assignments import Ended
from search.engine.looking_ahead import refuse_looking_ahead
from search.engine.needs import (
    check_runnable,
    needed_metrics,
    plugins_of,
    strategy_of,
    uses_local_classes,
)
from search.engine.observer import OneAtATime, RunObserver, RunOutcome, StudyStart
from search.engine.preparing import Prepared, prepare, refuse_other_data
from search.engine.run_end import report_end, used_up
from search.engine.stopping import INTERRUPTED, StopFlag, stop_on_signals
from search.errors import InputError
from search.files import Files
from search.rows import StudyRow
from search.settings import settings
from search.spec.budget import Budget
from search.spec.listed import is_listed, n_stacks
from search.spec.space import Space
from search.tasks.objective import ObjectiveConfig
from search.workers.team import work_together
from search.workers.worker import Tally

if TYPE_CHECKING:
    from search.engine.own_objective import Objective
    from search.slots.runners import TrialRunner
    from search.spec.study import StudySpec
    from search.store.repo import Store


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
            is not what the study was begun with, an own objective is missing, or a mixer of a
            causal study looks ahead.
        StoreError: The store cannot be used.
    """
    from search.engine.own_objective import ObjectiveRunner

    observer = OneAtATime(observer or RunObserver())
    stop = stop or StopFlag()
    local = settings()
    check_runnable(study, budget, objective)
    refuse_looking_ahead(study)
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
    refuse_looking_ahead(study)
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
