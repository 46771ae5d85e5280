"""What a result depends on besides architecture and seed, as one hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mixers.config import canonical_value
from mixers.registry import OWN_DISTRIBUTION, normalise

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec
    from search.spec.study import StudySpec

FORMAT = 1
"""Rises when this code trains differently, so that results of another kind are not reused."""


def training_key(
    study: StudySpec,
    spec: EncoderSpec,
    *,
    fingerprint: str,
    plugins: Mapping[str, tuple[str, str]],
) -> str:
    """Returns a hash of task, data, recipe, metrics, evaluation windows and plugin versions.

    Two trials with one architecture, one training seed and one key have the same result, in
    whichever study they stand.

    Args:
        study: The study; its seed draws the evaluation windows and masks.
        spec: The architecture, for the versions of the third-party mixers in it.
        fingerprint: Hash of the prepared data.
        plugins: Distribution and version by mixer kind.
    """
    kinds = sorted({block.mixer.kind for block in spec.blocks})
    document = {
        "format": FORMAT,
        "task": canonical_value(study.task),
        "data": fingerprint,
        "training": canonical_value(study.training.model_copy(update={"sweep_rates": ()})),
        "metrics": sorted(study.trained_metrics),
        "study_seed": study.seed,
        "plugins": {
            kind: plugins[kind]
            for kind in kinds
            if kind in plugins and normalise(plugins[kind][0]) != OWN_DISTRIBUTION
        },
        "task_and_metrics": task_and_metric_versions(study),
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def task_and_metric_versions(study: StudySpec) -> dict[str, tuple[str, str]]:
    """Returns distribution and version of the study's third-party task and metrics, by name."""
    from search.tasks.base import task_registry
    from search.tasks.metrics import metric_registry

    wanted = (
        (task_registry(), {study.task.kind}),
        (metric_registry(), {*study.trained_metrics}),
    )
    return {
        entry.kind: (entry.distribution, entry.version)
        for registry, names in wanted
        for entry in registry.entries()
        if entry.kind in names and normalise(entry.distribution) != OWN_DISTRIBUTION
    }
