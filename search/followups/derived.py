"""Studies derived from others, in the store: their names, their rows, and how they are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.answers.lengths import Derived
from search.answers.question import question_of
from search.errors import InputError
from search.followups.confirm import DerivedStudy, Scale, Selected, derive, labels_at
from search.spec.listed import default_budget, seeds_of, stacks
from search.spec.study_file import study_from
from search.tasks.objective import ObjectiveConfig

if TYPE_CHECKING:
    from search.engine.observer import RunObserver, RunOutcome
    from search.rows import StudyRow
    from search.spec.space import Labels
    from search.spec.study import StudySpec
    from search.store.readable import ReadableStore
    from search.store.repo import Store


@dataclass(frozen=True)
class Stage:
    """A derived study to be run or continued.

    Attributes:
        name: Its name, ``<base>.<purpose>``, with a number where an earlier one asked otherwise.
        derived: Its spec.
        row: Its row where it was begun before.
    """

    name: str
    derived: DerivedStudy
    row: StudyRow | None = None


def refuse_unfit(base: StudyRow, study: StudySpec) -> None:
    """Refuses a study whose finalists cannot be trained again.

    Raises:
        InputError: It is derived itself, searches an own function, or is being worked on.
    """
    if base.base is not None:
        raise InputError(
            f"study {base.name!r} repeats finalists of {base.base!r} already; confirm that one"
        )
    if isinstance(study.task, ObjectiveConfig):
        raise InputError(
            f"study {base.name!r} searches the function {study.task.name!r} of a script, which has "
            "no training steps or width to change; run it again from there"
        )
    if base.n_running:
        raise InputError(
            f"study {base.name!r} is being worked on, and its finalists may change; wait for it"
        )


def stages_of(
    store: Store,
    base: StudyRow,
    study: StudySpec,
    scales: Sequence[Scale],
    selected: Selected,
    seeds: int,
) -> list[Stage]:
    """Returns the derived studies of some scales; one that holds all that is wished for goes on.

    Raises:
        InputError: A finalist cannot be built at a scale.
    """
    there = derived_studies(store, base)
    return [
        stage_of(base, there, derive(study, scale, selected, seeds), selected) for scale in scales
    ]


def stage_of(
    base: StudyRow, there: Sequence[StudyRow], derived: DerivedStudy, selected: Selected
) -> Stage:
    """Returns the derived study to go on with, or a new one under the next free name.

    Args:
        base: The base study.
        there: The studies that are derived from it.
        derived: What is wished for.
        selected: What it repeats.
    """
    earlier = [row for row in there if row.purpose == derived.scale.purpose]
    wanted = {labels_at(labels, derived.study) for labels in selected.roles.values()}
    wanted &= set(stacks(derived.study))
    for row in reversed(earlier):
        study = spec_of(row)
        listed = set(stacks(study))
        is_broad = not derived.scale.is_broad or len(listed) >= len(set(stacks(derived.study)))
        if seeds_of(study) >= seeds_of(derived.study) and wanted <= listed and is_broad:
            return Stage(row.name, DerivedStudy(derived.scale, study, derived.left_out), row)
    name = f"{base.name}.{derived.scale.purpose}"
    return Stage(f"{name}.{len(earlier) + 1}" if earlier else name, derived)


def run_stages(
    store: Store,
    base: StudyRow,
    stages: Sequence[Stage],
    observer: RunObserver,
    *,
    in_process: bool = False,
) -> RunOutcome | None:
    """Runs the stages in turn; returns the outcome of the first that did not end well."""
    from search.engine.runner import run_study

    for stage in stages:
        study = stage.derived.study
        outcome = run_study(
            store,
            study,
            default_budget(study),
            name=stage.name,
            in_process=in_process,
            observer=observer,
            derived_from=(base.id, stage.derived.scale.purpose),
        )
        if outcome.exit_code:
            return outcome
    return None


def derived_studies(store: ReadableStore, base: StudyRow) -> list[StudyRow]:
    """Returns the studies derived from a study, oldest first."""
    return [row for row in store.studies() if row.base == base.name]


def newest(store: ReadableStore, base: StudyRow) -> dict[str, StudyRow]:
    """Returns the newest derived study of each purpose."""
    return {row.purpose: row for row in derived_studies(store, base) if row.purpose}


def derived_rows(store: ReadableStore, base: StudyRow) -> list[Derived]:
    """Reads the newest derived study of each purpose for the answer of its base.

    Raises:
        InputError: The spec of one cannot be built here.
    """
    found = newest(store, base).items()
    return [as_derived(store, purpose, row, spec_of(row)) for purpose, row in found]


def as_derived(store: ReadableStore, purpose: str, row: StudyRow, study: StudySpec) -> Derived:
    """Reads one derived study."""

    def at_its_sizes(labels: Labels) -> Labels:
        return labels_at(labels, study)

    return Derived(
        purpose=purpose,
        question=question_of(study),
        d_model=study.encoder.d_model,
        rows=store.rows(row.id, documents=True),
        labels_at=at_its_sizes,
    )


def spec_of(row: StudyRow) -> StudySpec:
    """Returns a stored study's spec.

    Raises:
        InputError: It cannot be built here, as when a mixer is not installed any more.
    """
    return study_from(row.spec, source=f"study {row.name}")
