"""Checks of a study that need several of its parts, and the facts of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mixers.config import MixerConfig
from search.spec.listed import is_listed, listed_problems, match_problems_of_list
from search.spec.measures_checks import measure_problems
from search.spec.sweep import sweep_problems
from search.tasks.objective import ObjectiveConfig

if TYPE_CHECKING:
    from search.spec.study import SpaceSpec, StudySpec

Path = tuple[str | int, ...]
CHOICES: Path = ("space", "choices")


def resolved_space(study: StudySpec) -> SpaceSpec:
    """Returns the space with every choice resolved for the study's sizes.

    Two ways to write one choice become one, so they make one study and one architecture.
    """

    def resolved(choices: Sequence[MixerConfig]) -> tuple[MixerConfig, ...]:
        return tuple(study.fitted(config)[0] for config in choices)

    layers = tuple(
        entry.model_copy(update={"choices": resolved(entry.choices)})
        for entry in study.space.layers
    )
    return study.space.model_copy(
        update={"choices": resolved(study.space.choices), "layers": layers}
    )


def problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    """Yields (path, what is wrong and what to do) for everything that no field shows alone."""
    if study.encoder.causal and study.task.reads_both_sides:
        yield (
            ("encoder", "causal"),
            f"task {study.task.kind} predicts tokens from both sides, and a causal encoder sees "
            "one; leave causal off, or take a task that is read from left to right, such as mqar",
        )
    of_space = [
        # The choices of listed architectures are theirs, and so are their problems.
        *(
            ()
            if study.space.architectures
            else _choice_problems(study, CHOICES, study.space.choices)
        ),
        *_layer_problems(study),
        *listed_problems(study),
    ]
    yield from of_space
    yield from measure_problems(study)
    yield from _strategy_problems(study)
    if not of_space:
        # They are built from the choices.
        of_baselines = [*_baseline_problems(study)]
        yield from of_baselines or _size_problems(study)
    yield from _training_problems(study)


def _choice_problems(
    study: StudySpec, path: Path, choices: Sequence[MixerConfig]
) -> Iterator[tuple[Path, str]]:
    if not choices:
        yield path, "no mixer to choose from; name at least one"
    for index, config in enumerate(choices):
        for field, problem in study.fitted(config)[1]:
            yield (*path, index, config.kind, *field), problem
        if config in choices[:index]:
            first = choices.index(config)
            yield (*path, index), f"the same choice as number {first}; give each choice once"


def _layer_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    n_layers = study.encoder.n_layers
    seen: set[int] = set()
    for index, entry in enumerate(study.space.layers):
        path: Path = ("space", "layers", index)
        if entry.layer >= n_layers:
            yield (
                (*path, "layer"),
                f"there is no layer {entry.layer}; {n_layers} layers count from 0 to "
                f"{n_layers - 1} (encoder.n_layers)",
            )
        if entry.layer in seen:
            yield (*path, "layer"), f"layer {entry.layer} is named twice; merge its choices"
        seen.add(entry.layer)
        yield from _choice_problems(study, (*path, "choices"), entry.choices)


def _strategy_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    from search.strategies.catalog import option_problems

    for path, problem in option_problems(study.strategy.name, study.strategy.options):
        yield ("strategy", *path.split(".")), problem


def _baseline_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    from search.spec.baselines import cheap_mixer, reference_mixer

    found: list[MixerConfig] = []
    for field, resolve in (("reference", reference_mixer), ("cheap", cheap_mixer)):
        try:
            found.append(resolve(study))
        except ValueError as error:
            yield ("baselines", field), str(error)
    if len(found) == 2 and found[0] == found[1] and len(study.space.choices) > 1:
        yield ("baselines", "cheap"), "the same choice as baselines.reference; name another one"


def _size_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    from search.spec.limited_space import space_problems
    from search.spec.matching import match_problems

    try:
        of_match: list[tuple[Path, str]] = [*match_problems(study)]
        of_match = of_match or [*match_problems_of_list(study)]
        yield from of_match if of_match else [*space_problems(study)]
    except Exception as error:  # whatever a plugin's module raises when it is built
        yield (
            ("limits",),
            f"a mixer's parameters cannot be counted: {type(error).__name__}: {error}",
        )


def _rung_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    steps = study.training.steps
    if not study.rungs:
        return
    if isinstance(study.task, ObjectiveConfig):
        yield ("rungs",), "an own function trains by itself, to its end; leave the rungs out"
    if is_listed(study):
        yield ("rungs",), "every training of a list goes to its end; leave the rungs out"
    for index, rung in enumerate(study.rungs):
        if rung >= steps:
            problem = f"the training ends after {steps} steps; a rung lies before (training.steps)"
            yield ("rungs", index), problem
        if index and rung <= study.rungs[index - 1]:
            yield ("rungs", index), "rungs rise; write them in order, each once"


def _training_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    yield from _rung_problems(study)
    yield from sweep_problems(study)
    training = study.training
    if training.validations > training.steps:
        yield (
            ("training", "validations"),
            f"{training.validations} readings do not fit into {training.steps} steps; "
            "lower it or raise training.steps",
        )
