"""Studies derived from a study: does its answer hold at longer training, or at another width?

The finalists, all-attention, a shorter model and further architectures spread over the ranking are
trained again with a schedule of their own for each length: a curve of one schedule cannot be read
off at a fourth of its steps, where its learning rate is still high. All of it is pure; the runs
are ordinary listed studies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixers.config import MixerConfig, canonical_json
from mixers.notation import format_architecture, parse_architecture
from mixers.spec import fitted
from search.answers.lengths import ENOUGH_TO_RANK, with_reference
from search.errors import InputError, NothingThereError
from search.rows import TrialRow
from search.spec.listed import LISTED
from search.spec.space import Labels, layer_labels

if TYPE_CHECKING:
    from search.spec.study import StudySpec

DEFAULT_FACTOR = 4
MOST_STEPS = 10**12


@dataclass(frozen=True)
class Scale:
    """Where the finalists are trained again.

    Attributes:
        purpose: What the derived study is for: ``steps-x4``, ``steps-1500``, ``d_model-128``.
        steps: Training steps.
        d_model: Width.
        is_broad: Whether the architectures that are spread over the ranking are trained too.
    """

    purpose: str
    steps: int
    d_model: int
    is_broad: bool


@dataclass(frozen=True)
class Selected:
    """What is trained again.

    Attributes:
        roles: Layers of pick, reference, shorter model and rival.
        spread: Layers of further architectures, best first.
    """

    roles: Mapping[str, Labels]
    spread: tuple[Labels, ...] = ()


@dataclass(frozen=True)
class DerivedStudy:
    """A listed study that repeats architectures of another study at a scale.

    Attributes:
        scale: Where.
        study: Its spec.
        left_out: Notation and reason of the architectures that cannot be built there.
    """

    scale: Scale
    study: StudySpec
    left_out: tuple[tuple[str, str], ...] = ()


def steps_of(text: str, base_steps: int) -> int:
    """Reads ``x4`` (times the study's steps) or ``2400``.

    Raises:
        InputError: It is neither, or not longer than the study's training.
    """
    factor, number = text.startswith("x"), text.removeprefix("x")
    try:
        steps = round(float(number) * base_steps) if factor else int(number)
    except (ValueError, OverflowError):
        raise InputError(
            f"--steps '{text}': write x4 (four times the study's {base_steps} steps) or a number "
            "of steps"
        ) from None
    if not base_steps < steps <= MOST_STEPS:
        raise InputError(
            f"--steps '{text}': {steps} steps; a confirmation trains longer than the study's "
            f"{base_steps} steps, such as x{DEFAULT_FACTOR}"
        )
    return steps


def scales_of(
    study: StudySpec, steps: int | None = None, d_model: int | None = None
) -> tuple[Scale, ...]:
    """Returns where to train again: at the study's own scale first, then at each other one.

    Longer trainings double on the way to the asked length. Without a wish it is four times the
    study's steps.
    """
    own, width = study.training.steps, study.encoder.d_model
    if d_model == width:
        raise InputError(f"--d-model {d_model}: that is the study's own width; name another one")
    if steps is None and d_model is None:
        steps = DEFAULT_FACTOR * own
    found = [Scale(length_purpose(own, own), own, width, is_broad=True)]
    if steps is not None:
        longer = 2 * own
        while longer < steps:
            found.append(Scale(length_purpose(longer, own), longer, width, is_broad=False))
            longer *= 2
        found.append(Scale(length_purpose(steps, own), steps, width, is_broad=True))
    if d_model is not None:
        found.append(Scale(f"d_model-{d_model}", own, d_model, is_broad=True))
    return tuple(found)


def length_purpose(steps: int, own: int) -> str:
    """Names a training length."""
    factor, rest = divmod(steps, own)
    return f"steps-{steps}" if rest else f"steps-x{factor}"


def select(study: StudySpec, rows: Sequence[TrialRow]) -> Selected:
    """Chooses what is trained again: finalists, and enough others for a rank correlation.

    All-attention and a shorter model are among them even where the study did not get to them. The
    others are as many as make `ENOUGH_TO_RANK`, equally spaced in the ranking, its ends included.

    Raises:
        NothingThereError: The study has no pick yet.
    """
    from search.answers.answer import chosen_of
    from search.answers.arms import arms_of
    from search.answers.question import question_of
    from search.answers.recipe import at_shared_recipe

    question = question_of(study)
    chosen = chosen_of(rows, study)
    if "pick" not in chosen:
        raise NothingThereError("no architecture of full depth has a result yet; run it first")
    roles = with_reference(chosen, question)
    half = question.n_layers // 2
    if half:
        roles.setdefault("shorter", (question.cheap,) * half)
    ranked = sorted(
        (
            (question.sign * mean, arm.mixers)
            for arm in arms_of(at_shared_recipe(rows), question)
            if (mean := arm.selection_mean) is not None
        ),
        key=lambda pair: pair[0],
    )
    others = [
        labels for labels in dict.fromkeys(m for _, m in ranked) if labels not in roles.values()
    ]
    return Selected(roles, tuple(spread(others, ENOUGH_TO_RANK - len(set(roles.values())))))


def spread(ranked: Sequence[Labels], n: int) -> list[Labels]:
    """Takes n of a ranking, equally spaced, its ends included; all where there are fewer."""
    if n >= len(ranked):
        return list(ranked)
    places = np.linspace(0, len(ranked) - 1, max(0, n)).round().astype(int)
    return [ranked[place] for place in places]


def derive(base: StudySpec, scale: Scale, selected: Selected, seeds: int) -> DerivedStudy:
    """Returns the listed study of a scale.

    The feed-forward width keeps its ratio to the model width, and what a mixer's notation leaves
    out (heads, filters) follows the new width.

    Raises:
        InputError: The pick or all-attention cannot be built at this scale, or nothing else can.
    """
    document = _document(base)
    document["encoder"]["d_model"] = scale.d_model
    document["encoder"]["d_ff"] = round(base.encoder.d_ff * scale.d_model / base.encoder.d_model)
    document["training"] |= {"steps": scale.steps, "sweep_rates": []}
    sizes = {"d_model": scale.d_model, "max_seq_len": base.sizes.max_seq_len}
    wanted = [*selected.roles.values(), *(selected.spread if scale.is_broad else ())]
    notations: dict[str, None] = {}
    left_out: list[tuple[str, str]] = []
    for labels in dict.fromkeys(wanted):
        stack, problem = _fitted(labels, sizes)
        notation = format_architecture(stack, **sizes)
        if not problem:
            notations[notation] = None
        elif labels in (selected.roles["pick"], selected.roles.get("reference")):
            raise InputError(
                f"{scale.purpose}: {notation} cannot be built: {problem}; or choose a d_model that "
                "is a multiple of 16, which suits every built-in mixer"
            )
        else:
            left_out.append((notation, problem))
    document["space"] = {"architectures": list(notations)}
    document["strategy"] = {"name": LISTED, "options": {"seeds": seeds}}
    reference = _fitted(selected.roles["reference"], sizes)[0][0]
    document["baselines"] = {"reference": format_architecture([reference], **sizes)}
    document |= {"limits": {}, "recipe": "shared", "recall": False, "rungs": []}
    from search.spec.study_file import study_from

    study = study_from(document, source=f"at {scale.purpose}")
    return DerivedStudy(scale, study, tuple(left_out))


def labels_at(labels: Labels, study: StudySpec) -> Labels:
    """Returns the notation of an architecture's layers at the sizes of another study."""
    return layer_labels([parse_architecture(label)[0] for label in labels], study)


def _document(study: StudySpec) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(canonical_json(study))
    return found


def _fitted(labels: Labels, sizes: Mapping[str, int]) -> tuple[list[MixerConfig], str]:
    """Returns the layers resolved for sizes, and what does not fit."""
    stack, problems = [], []
    for label in labels:
        [config] = parse_architecture(label)
        resolved, conflicts = fitted(
            config, d_model=sizes["d_model"], max_seq_len=sizes["max_seq_len"]
        )
        stack.append(resolved)
        problems += [f"{'.'.join((config.kind, *field))}: {text}" for field, text in conflicts]
    return stack, "; ".join(dict.fromkeys(problems))
