"""Listed studies: given architectures (or a whole space), each trained with the same seeds.

Nothing is chosen by results, so every trial is read on the test split too, and the study ends when
the list does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mixers.config import MixerConfig
from mixers.errors import SpecError
from mixers.notation import MOST_LAYERS, format_architecture, parse_architecture
from search.spec.budget import Budget
from search.spec.space import Labels, Space, layer_labels

if TYPE_CHECKING:
    from search.spec.study import EncoderTemplate, SpaceSpec, StudySpec

LISTED = "listed"
DEFAULT_SEEDS = 4
DEFAULT_BUDGET = Budget("trials", 20)

Path = tuple[str | int, ...]
ARCHITECTURES: Path = ("space", "architectures")


def is_listed(study: StudySpec) -> bool:
    """Whether the study trains a list instead of searching."""
    return study.strategy.name == LISTED


def seeds_of(study: StudySpec) -> int:
    """Returns how many seeds each architecture of a listed study is trained with."""
    return int(study.strategy.options.get("seeds", DEFAULT_SEEDS))


def stacks(study: StudySpec) -> Iterator[Labels]:
    """Yields the architectures of a listed study: those listed, else the whole space."""
    if not study.space.architectures:
        yield from Space.of(study)
        return
    for notation in study.space.architectures:
        yield layer_labels(parse_architecture(notation), study)


def n_stacks(study: StudySpec) -> int:
    """Returns the number of architectures of a listed study."""
    return len(study.space.architectures) or Space.of(study).size


def n_trainings(study: StudySpec) -> int:
    """Returns the number of trials after which a listed study is complete."""
    return n_stacks(study) * seeds_of(study)


def default_budget(study: StudySpec) -> Budget:
    """Returns the budget where none is given: 20 trials, or all trainings of a list."""
    return Budget("trials", n_trainings(study)) if is_listed(study) else DEFAULT_BUDGET


def resolved_architectures(study: StudySpec) -> tuple[SpaceSpec, EncoderTemplate]:
    """Returns space and encoder as the listed architectures decide them.

    Each stack is written in one way, so that two ways to write it make one study. The choices are
    the mixers that occur, and the depth is that of the deepest stack, unless they are given.
    """
    space, encoder, sizes = study.space, study.encoder, study.mixer_sizes
    notations: list[str] = []
    mixers: dict[MixerConfig, None] = {}
    depth = 0
    for notation in space.architectures:
        stack = _read(notation)
        if isinstance(stack, str):
            notations.append(notation)
            continue
        resolved = [_resolved(config, study) for config in stack]
        notations.append(format_architecture(resolved, **sizes))
        mixers |= dict.fromkeys(resolved)
        depth = max(depth, len(resolved))
    changes: dict[str, object] = {"architectures": tuple(notations)}
    given = {_resolved(config, study) for config in space.choices}
    if mixers and ("choices" not in space.model_fields_set or mixers.keys() == given):
        changes["choices"] = tuple(mixers)
    if depth and "n_layers" not in encoder.model_fields_set:
        encoder = encoder.model_copy(update={"n_layers": depth})
    return space.model_copy(update=changes), encoder


def listed_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    """Yields (path, what is wrong and what to do) about lists and their strategy."""
    if is_listed(study):
        seeds = study.strategy.options.get("seeds", DEFAULT_SEEDS)
        if isinstance(seeds, int) and seeds < 1:
            yield ("strategy", "options", "seeds"), f"{seeds} seeds train nothing; give 1 or more"
        if study.recipe != "shared":
            yield (
                ("recipe",),
                "a listed study trains every architecture by the one recipe; leave it at shared",
            )
    elif study.space.architectures:
        yield (
            ARCHITECTURES,
            "listed architectures are trained as they are, not searched; set strategy.name to "
            f"{LISTED}, or leave them out",
        )
    if study.space.architectures:
        yield from _architecture_problems(study)


def _architecture_problems(study: StudySpec) -> Iterator[tuple[Path, str]]:
    space = study.space
    mixers: set[MixerConfig] = set()
    for index, notation in enumerate(space.architectures):
        path = (*ARCHITECTURES, index)
        stack = _read(notation)
        if isinstance(stack, str):
            yield path, stack
            continue
        for config in dict.fromkeys(stack):
            mixers.add(_resolved(config, study))
            for field, problem in study.fitted(config)[1]:
                yield path, f"{'.'.join((config.kind, *field))}: {problem}"
        if notation in space.architectures[:index]:
            first = space.architectures.index(notation)
            yield path, f"the same architecture as number {first}; list each once"
    if study.limits.model_dump(exclude_none=True):
        yield ("limits",), "listed architectures are trained whatever they cost; leave limits out"
    if space.layers:
        yield (
            ("space", "layers"),
            "listed architectures say what each layer is; leave the layers out",
        )
    if mixers and mixers != set(space.choices):
        yield (
            ("space", "choices"),
            "listed architectures say which mixers there are; leave the choices out",
        )


def match_problems_of_list(study: StudySpec) -> Iterator[tuple[Path, str]]:
    """Yields the listed architectures that cannot have the cost that `match` asks for."""
    for index, notation in enumerate(study.space.architectures):
        try:
            study.encoder_spec(parse_architecture(notation))
        except ValueError as error:
            yield (*ARCHITECTURES, index), str(error)


def _read(notation: str) -> tuple[MixerConfig, ...] | str:
    """Returns the layers of a notation, or what is wrong with it."""
    try:
        stack = parse_architecture(notation)
    except SpecError as error:
        return str(error)
    if len(stack) > MOST_LAYERS:
        return f"{len(stack)} layers; an architecture has at most {MOST_LAYERS}"
    return stack


def _resolved(config: MixerConfig, study: StudySpec) -> MixerConfig:
    return study.fitted(config)[0]
