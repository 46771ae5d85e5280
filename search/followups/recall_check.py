"""The recall check at the end of a run: the pick and all-attention on short associative recall.

It is a derived listed study of one or two stacks, not counted in the budget of its base. A pick
that no budget was left to confirm is not checked, and a study whose trials cost fewer FLOPs than
the check would is left without. With a budget of time the check takes what time
is left, and where none is left it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.answers.recall import PURPOSE
from search.engine.runner import run_study
from search.errors import InputError
from search.followups.confirm import DerivedStudy, Scale, Selected
from search.followups.derived import Stage, derived_studies, stage_of
from search.rows import FINAL_STATES, StudyRow, TrialRow
from search.spec.budget import Budget, training_flops
from search.spec.listed import default_budget, n_trainings, seeds_of
from search.spec.recall import short_recall
from search.spec.space import Labels, layer_labels
from search.tasks.objective import ObjectiveConfig
from search.wording import joined

if TYPE_CHECKING:
    from search.engine.observer import RunObserver, RunOutcome
    from search.spec.study import StudySpec
    from search.store.repo import Store

TASK = "mqar"


def is_wanted(study: StudySpec) -> bool:
    """Whether a study's pick is checked: it asks for it, and its own task is not recall."""
    is_own = isinstance(study.task, ObjectiveConfig)
    return study.recall and study.task.kind != TASK and not is_own


def check_recall(
    store: Store,
    name: str,
    study: StudySpec,
    budget: Budget,
    observer: RunObserver,
    *,
    in_process: bool = False,
    workers: int | None = None,
) -> RunOutcome | None:
    """Trains a finished study's pick and all-attention on recall, unless that is done.

    Args:
        store: The store.
        name: The study.
        study: Its spec.
        budget: That of the run.
        observer: Told what happens.
        in_process: Train in this process.
        workers: Trials to train at once.

    Returns:
        How the trainings ended; None where there was nothing to do.
    """
    row = store.study(name)
    if not is_wanted(study) or row.n_running:
        return None
    rows = store.rows(row.id, curves=False)
    try:
        stage = recall_stage(store, row, study, rows)
    except InputError as error:
        observer.message(f"recall check left out: {error}")
        return None
    if stage is None or _is_done(store, stage):
        return None
    costs, spent = flops_of_check(stage.derived.study), flops_behind(rows, study)
    if stage.row is None and spent < costs:
        observer.message(
            f"recall check left out: it would cost {costs / max(1, spent):.2g} times the FLOPs "
            "of the study's own trials; a larger budget does it"
        )
        return None
    allowed = _allowed(budget, row, stage)
    if allowed is None:
        observer.message(
            f"recall check left out: the time budget of {budget} is used up; more time, or a "
            "number of trials, does it"
        )
        return None
    observer.message(_announcement(stage, budget))
    return run_study(
        store,
        stage.derived.study,
        allowed,
        name=stage.name,
        in_process=in_process,
        observer=observer,
        derived_from=(row.id, PURPOSE),
        workers=workers,
    )


def recall_stage(
    store: Store, base: StudyRow, study: StudySpec, rows: Sequence[TrialRow]
) -> Stage | None:
    """Returns the recall study of the present pick, begun or not; None where none is confirmed.

    Raises:
        InputError: The pick cannot be built at the sizes of the recall task.
    """
    from search.answers.answer import chosen_of

    pick = chosen_of(rows, study).get("pick")
    if pick is None or not any(row.phase == "confirm" and row.mixers == pick for row in rows):
        return None
    short = short_recall(study, [pick])
    scale = Scale(PURPOSE, short.training.steps, short.encoder.d_model, is_broad=False)
    selected = Selected({"pick": pick, "reference": reference_stack(study)})
    derived = DerivedStudy(scale, short)
    return stage_of(base, derived_studies(store, base), derived, selected)


def flops_of_check(check: StudySpec) -> int:
    """Returns the training FLOPs of a recall study, which its base should have spent too."""
    from mixers.cost import count_flops
    from mixers.notation import parse_architecture

    recipe = check.training
    return sum(
        training_flops(
            count_flops(check.encoder_spec(parse_architecture(notation))),
            steps=recipe.steps,
            batch_size=recipe.batch_size,
        )
        for notation in check.space.architectures
    ) * seeds_of(check)


def flops_behind(rows: Sequence[TrialRow], study: StudySpec) -> int:
    """Returns the training FLOPs of a study's trials, whoever trained them first."""
    recipe = study.training
    return sum(
        training_flops(row.flops, steps=row.steps or recipe.steps, batch_size=recipe.batch_size)
        for row in rows
        if row.flops
    )


def reference_stack(study: StudySpec) -> Labels:
    """Returns the layers of the study's reference, the control of the check."""
    from search.spec.baselines import reference_mixer

    return layer_labels([reference_mixer(study)] * study.encoder.n_layers, study)


def _is_done(store: Store, stage: Stage) -> bool:
    rows = store.rows(stage.row.id, curves=False) if stage.row else []
    ended = sum(row.state in FINAL_STATES for row in rows)
    return ended >= n_trainings(stage.derived.study)


def _allowed(budget: Budget, row: StudyRow, stage: Stage) -> Budget | None:
    """What the check may spend: all of its trials, or the time that is left."""
    if budget.unit != "seconds":
        return default_budget(stage.derived.study)
    spent_there = stage.row.busy_s if stage.row else 0.0
    left = budget.amount - row.busy_s - spent_there
    return Budget("seconds", spent_there + left) if left > 0 else None


def _announcement(stage: Stage, budget: Budget) -> str:
    study = stage.derived.study
    counted = "in the time left" if budget.unit == "seconds" else "not counted in the budget"
    return (
        f"recall check: {joined(study.space.architectures)} on associative recall, "
        f"{seeds_of(study)} x {study.training.steps} steps each, {counted}; --set recall=false "
        "leaves it out"
    )
