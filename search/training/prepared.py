"""What the trials of one study share in one process: the task, ready to train, and probe inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixers.config import canonical_json
from search.tasks.base import PROBE_CONTEXTS, build_task, task_registry

if TYPE_CHECKING:
    import torch

    from search.tasks.base import Task, TaskConfig


@dataclass(frozen=True)
class Prepared:
    """What the trials of one study share in one process."""

    task: Task[Any]
    contexts: torch.Tensor
    vocabulary: torch.Tensor


KEPT_TASKS = 2
SHARED: dict[tuple[object, ...], Prepared] = {}


def prepared_task(config: TaskConfig, seed: int, cache_dir: str) -> Prepared:
    """The task of a study, read and tokenised, with its probe contexts; kept for later trials.

    The class belongs to the key: a notebook may define a task of the same name anew.
    """
    key = (task_registry().load(config.kind), canonical_json(config), seed, cache_dir)
    if key not in SHARED:
        task = build_task(config, seed=seed, cache_dir=Path(cache_dir))
        task.prepare()
        contexts = task.probe_contexts(PROBE_CONTEXTS)
        if len(SHARED) >= KEPT_TASKS:
            SHARED.pop(next(iter(SHARED)))
        SHARED[key] = Prepared(task, contexts, task.probe_vocabulary())
    return SHARED[key]
