"""What a study needs of the place that runs it, and what is refused where that is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.errors import InputError
from search.spec.budget import Budget, training_flops
from search.spec.limits import limits_of
from search.spec.space import Space
from search.tasks.objective import ObjectiveConfig

if TYPE_CHECKING:
    from mixers.config import MixerConfig
    from mixers.spec import EncoderSpec
    from search.engine.own_objective import Objective
    from search.rows import StudyRow
    from search.spec.study import StudySpec
    from search.strategies.base import Strategy


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


def needed_metrics(study: StudySpec) -> tuple[str, ...]:
    """Returns the metrics that objectives and limits name."""
    judged = [*study.measures, *(limit.measure for limit in limits_of(study))]
    return tuple(dict.fromkeys(m.name for m in judged if m.origin == "metric"))


def flops_of(study: StudySpec, spec: EncoderSpec) -> int:
    """Returns the training FLOPs of an architecture; none are known for an own objective."""
    if isinstance(study.task, ObjectiveConfig):
        return 0
    from mixers.cost import count_flops

    recipe = study.training
    return training_flops(count_flops(spec), steps=recipe.steps, batch_size=recipe.batch_size)


def mixers_of(study: StudySpec) -> list[MixerConfig]:
    """Returns every mixer that the study may build, each once."""
    from search.spec.baselines import baselines

    configs = [
        *Space.product(study).choices.values(),
        *(m for b in baselines(study) for m in b.mixers),
    ]
    return [config for at, config in enumerate(configs) if config not in configs[:at]]


def plugins_of(study: StudySpec) -> dict[str, tuple[str, str]]:
    """Returns distribution and version of every mixer that the study may build."""
    from mixers.registry import mixer_registry

    found = {}
    for kind in sorted({config.kind for config in mixers_of(study)}):
        entry = mixer_registry.get(kind)
        found[kind] = (entry.distribution, entry.version)
    return found


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


def uses_local_classes(study: StudySpec) -> bool:
    """Says whether a mixer or the task was registered by a script: no child could import it."""
    from mixers.registry import LOCAL

    kinds = {*plugins_of(study), study.task.kind}
    return any(kind.startswith(f"{LOCAL}.") for kind in kinds)
