"""The recall check: a short training on associative recall, which loss on text does not show.

A mixer that predicts text well may be unable to look anything up in its input. So architectures
are also trained on `mqar` in a short form, with a recipe of its own, and an architecture solves it
or does not. The sizes and the recipe are chosen by measurement: `python -m benchmarks.recall`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mixers.config import canonical_json
from search.spec.baselines import reference_mixer
from search.spec.listed import LISTED
from search.spec.space import Labels, Space, layer_labels

if TYPE_CHECKING:
    from search.spec.study import StudySpec

SOLVED = 0.9
"""Accuracy on the short form from which on an architecture is said to solve it."""

SEEDS = 3
"""Trainings of each architecture: whether one solves it is a matter of the seed, too."""

TASK: dict[str, Any] = {
    "kind": "mqar",
    "vocab_size": 16,
    "seq_len": 9,
    "n_pairs": 3,
    "evaluation_examples": 256,
    "test_examples": 256,
}

TRAINING: dict[str, Any] = {
    "steps": 1500,
    "batch_size": 64,
    "learning_rate": 6e-3,
    "warmup_fraction": 0.1,
    "weight_decay": 0.01,
    "gradient_clip": 1.0,
    "validations": 6,
}


def short_recall(
    study: StudySpec, architectures: Sequence[Labels] = (), *, seeds: int = SEEDS
) -> StudySpec:
    """Returns the listed study that trains architectures on the short form.

    The encoder is the study's own. The stack of the reference alone is trained first: where it
    does not solve the task, failing it says nothing about the others. What an architecture may
    cost (`match`, `limits`) is left out, since the question is what its mixers can do.

    Args:
        study: The study whose architectures are to be tried.
        architectures: The notation of each one's layers; none = each choice of the space at every
            layer.
        seeds: Trainings of each.

    Raises:
        InputError: An architecture cannot be built for sequences of this length.
    """
    from search.spec.study_file import study_from

    document: dict[str, Any] = json.loads(canonical_json(study))
    depth = study.encoder.n_layers
    [reference] = layer_labels([reference_mixer(study)], study)
    stacks = architectures or [(label,) * depth for label in Space.product(study).choices]
    wanted = dict.fromkeys([(reference,) * depth, *stacks])
    cheap = next((one for labels in wanted for one in labels if one != reference), reference)
    document |= {
        "task": TASK,
        "space": {"architectures": [", ".join(labels) for labels in wanted]},
        "objectives": ["loss"],
        "metrics": ["accuracy"],
        "limits": {},
        "match": "none",
        "training": {**TRAINING, "precision": study.training.precision},
        "recipe": "shared",
        "recall": False,
        "rungs": [],
        "strategy": {"name": LISTED, "options": {"seeds": seeds}},
        "baselines": {"reference": reference, "cheap": cheap},
    }
    return study_from(document, source="the short form of recall")
