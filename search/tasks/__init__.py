"""Tasks: data, head and records. Each is an entry point of the group `search.tasks.v1`."""

from search.tasks.base import (
    SPLITS,
    AnyTask,
    Split,
    Task,
    TaskConfig,
    TaskSizes,
    build_task,
    task_registry,
)

__all__ = [
    "SPLITS",
    "AnyTask",
    "Split",
    "Task",
    "TaskConfig",
    "TaskSizes",
    "build_task",
    "task_registry",
]
