"""`search.run` and `search.open`: the command line's work for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from search.errors import InputError
from search.spec.budget import Budget

if TYPE_CHECKING:
    from mixers.config import MixerConfig
    from search.engine.observer import RunObserver, RunOutcome
    from search.engine.own_objective import Objective
    from search.spec.study import StudySpec
    from search.store.repo import Store

DEFAULT_STORE = "sqlite:///search.db"


def run(
    study: StudySpec | Mapping[str, Any] | str | PathLike[str] | None = None,
    budget: str | int | None = None,
    store: str | Store = DEFAULT_STORE,
    *,
    name: str | None = None,
    in_process: bool = False,
    seed: int | None = None,
    objective: Objective | None = None,
    n_layers: int | None = None,
    choices: Sequence[str | Mapping[str, Any] | MixerConfig] | None = None,
    metric: str | None = None,
    direction: Literal["minimize", "maximize"] | None = None,
    unit: str | None = None,
    tolerance: float | None = None,
    observer: RunObserver | None = None,
    workers: int | None = None,
) -> RunOutcome:
    """Runs a study, or continues it, and returns how it ended; `open` reads the results.

    With `objective`, your own function takes the place of the built-in training: it gets an
    architecture (`.blocks`, `.n_layers`, `.code`, `.notation`), the seed and ``report(step,
    value)``, and returns a number or a dict of metrics. It runs in this process.

    Args:
        study: A spec, a document, or the path of a study file; the default study if not given.
        budget: ``"20"`` trials, ``"30m"``, ``"2h"`` or ``"3e15flop"``, earlier runs included; by
            default 20 trials, or all trainings of a listed study.
        store: URL of the store, or an open one.
        name: Name of the study; by default it derives from the spec.
        in_process: Train in this process.
        seed: Seed of the study.
        objective: An own function.
        n_layers: Layers of each architecture.
        choices: Mixers to choose from: notation, documents or configs.
        metric: The metric of an own function that ranks; `loss` by default.
        direction: Whether a lower or a higher value of it is better; `minimize` by default.
        unit: Its unit.
        tolerance: How much worse than the reference still counts as equal, in that unit.
        observer: Told what happens on the way.
        workers: Trials to train at once; by default one, or one on each GPU.

    Raises:
        InputError: Something of the above is wrong; nothing was spent.
        StoreError: The store cannot be used.
    """
    from search.engine.observer import RunObserver
    from search.engine.run_end import EXIT_OK
    from search.engine.runner import run_study
    from search.followups.recall_check import check_recall
    from search.spec.listed import default_budget
    from search.store.repo import Store

    amount = None if budget is None else Budget.parse(budget)
    spec = study_of(
        study,
        seed=seed,
        objective=objective,
        n_layers=n_layers,
        choices=choices,
        metric=metric,
        direction=direction,
        unit=unit,
        tolerance=tolerance,
    )
    opened = store if isinstance(store, Store) else open(store, create=True)
    amount = amount or default_budget(spec)
    try:
        outcome = run_study(
            opened,
            spec,
            amount,
            name=name,
            in_process=in_process,
            objective=objective,
            observer=observer,
            workers=workers,
        )
        if outcome.exit_code == EXIT_OK:
            watcher = observer or RunObserver()
            check_recall(
                opened,
                outcome.study,
                spec,
                amount,
                watcher,
                in_process=in_process,
                workers=workers,
            )
        return outcome
    finally:
        if opened is not store:
            opened.close()


def open(store: str = DEFAULT_STORE, *, create: bool = False) -> Store:
    """Opens a store: `.studies()`, `.leaderboard(study)`, `.rows(study)`, `.query(sql)`.

    Args:
        store: Its URL, or the path of an SQLite file.
        create: Whether to make what is not there.

    Raises:
        InputError: The URL is wrong.
        NothingThereError: There is no store.
        StoreError: It cannot be used.
    """
    from search.settings import settings
    from search.store.repo import Store

    return Store.open(store, create=create, lease_s=settings().lease_s)


def study_of(
    study: StudySpec | Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    seed: int | None = None,
    objective: Objective | None = None,
    n_layers: int | None = None,
    choices: Sequence[str | Mapping[str, Any] | MixerConfig] | None = None,
    metric: str | None = None,
    direction: Literal["minimize", "maximize"] | None = None,
    unit: str | None = None,
    tolerance: float | None = None,
) -> StudySpec:
    """Returns the study that arguments of `run` describe.

    Raises:
        InputError: It is no valid study.
    """
    from search.spec.study import StudySpec
    from search.spec.study_file import load_study, study_from

    if isinstance(study, str | PathLike):
        study = load_study(study)
    document: dict[str, Any] = {}
    if isinstance(study, StudySpec):
        document = study.model_dump()
    elif study is not None:
        document = dict(study)
    if objective is not None:
        document["task"] = objective_task(document, objective, direction, unit)
        document.setdefault("metrics", [])
        if metric is not None:
            document["objectives"] = [metric]
    elif (metric, direction, unit) != (None, None, None):
        raise InputError("metric=, direction= and unit= describe an own function; give objective=")
    if n_layers is not None:
        document["encoder"] = {**section(document, "encoder"), "n_layers": n_layers}
    if choices is not None:
        document["space"] = {**section(document, "space"), "choices": list(choices)}
    if seed is not None:
        document["seed"] = seed
    if tolerance is not None:
        document["tolerance"] = tolerance
    return study_from(document)


def objective_task(
    document: Mapping[str, Any],
    objective: Objective,
    direction: Literal["minimize", "maximize"] | None,
    unit: str | None,
) -> dict[str, Any]:
    """Returns the task section for an own function; what a given one says otherwise is kept."""
    from search.engine.own_objective import objective_name, source_sha256
    from search.tasks.objective import OBJECTIVE

    if not callable(objective):
        raise InputError(f"objective={objective!r:.60}: expected a function")
    given = section(document, "task")
    if given and given.get("kind", OBJECTIVE) != OBJECTIVE:
        raise InputError("objective=: the study has a task of its own; give one of the two")
    named = {
        "kind": OBJECTIVE,
        "name": objective_name(objective),
        "source_sha256": source_sha256(objective),
    }
    said = {"direction": direction, "unit": unit}
    return {**given, **named, **{key: value for key, value in said.items() if value is not None}}


def section(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns a section of a study document as a plain dict, empty if it is not there."""
    found = document.get(name, {})
    if hasattr(found, "model_dump"):
        found = found.model_dump()
    if not isinstance(found, Mapping):
        raise InputError(f"{name}: expected a mapping, got {found!r:.60}")
    return dict(found)
