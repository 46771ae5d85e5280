"""A user's own function in place of a task: `search.run(objective=fn)`.

No plugin and no data: the study document only names the function and holds the hash of its source,
so that a changed function is another study. Only the script that has the function can run it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from mixers.config import Since
from mixers.union import RegistryUnion
from search.tasks.base import TaskConfig, TaskSizes, task_registry

OBJECTIVE = "objective"


class ObjectiveConfig(TaskConfig):
    """The config that stands for an own function.

    Attributes:
        name: Name of the function.
        source_sha256: Hash of its source.
        direction: Whether a lower or a higher value is better.
        directions: Directions of other metrics that are objectives, where they differ from it.
        unit: Unit of the value and of the study's tolerance.
        vocab_size: Number of token ids in the architectures that the function is given.
        seq_len: Longest input in tokens of those architectures.
    """

    kind: Literal["objective"] = "objective"
    name: Annotated[str, Field(min_length=1)]
    source_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    direction: Literal["minimize", "maximize"] = "minimize"
    directions: Annotated[dict[str, Literal["minimize", "maximize"]], Since(2)] = Field(
        default_factory=dict
    )
    unit: str = ""
    vocab_size: Annotated[int, Field(ge=1)] = 512
    seq_len: Annotated[int, Field(ge=1)] = 64

    @property
    def sizes(self) -> TaskSizes:
        """The sizes as given."""
        return TaskSizes(vocab_size=self.vocab_size, max_seq_len=self.seq_len)


class StudyTasks(RegistryUnion):
    """The registered tasks and own functions: what may stand in a study's `task`."""

    def __init__(self) -> None:
        super().__init__(task_registry())

    def config_types(self) -> dict[str, type[BaseModel]]:
        """Return {kind: config class}."""
        own: dict[str, Any] = {OBJECTIVE: ObjectiveConfig}
        return super().config_types() | own
