"""The contract of a task: what data it gives, what model it needs, what it records.

Importing this module does not import torch, so that a study can be read without it.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import ConfigDict

from mixers.config import FrozenModel
from mixers.registry import Registry
from mixers.union import RegistryUnion
from search.data.splits import SPLITS, Split
from search.errors import InputError

if TYPE_CHECKING:
    from torch import LongTensor, Tensor, nn

    from mixers.spec import EncoderSpec

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

PROBE_CONTEXTS = 24
"""Inputs that the probe of every trial asks a task for; `prepare` refuses data that has fewer."""

Batch = dict[str, "Tensor"]


@dataclass(frozen=True)
class TaskSizes:
    """The sizes of an encoder that the data decides; names as in `EncoderSpec`."""

    vocab_size: int
    max_seq_len: int
    n_segments: int = 0


class TaskConfig(FrozenModel):
    """Base of every task's config; a subclass sets `kind: Literal["..."]` and its own fields.

    Attributes:
        reads_both_sides: Whether the task is defined by what stands on both sides of a token, so
            that a causal encoder cannot be trained for it.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    reads_both_sides: ClassVar[bool] = False

    kind: str

    @property
    def sizes(self) -> TaskSizes:
        """The encoder sizes that follow from this config alone."""
        raise NotImplementedError(f"{type(self).__name__} must define sizes")


ConfigT = TypeVar("ConfigT", bound=TaskConfig)


class Task(ABC, Generic[ConfigT]):
    """Data, head and records of one learning problem.

    Everything random is a pure function of seeds that are passed in; a task never touches a global
    random state.

    Args:
        config: The task's config.
        seed: The study seed: evaluation windows and masks are drawn from it, once per study.
        cache_dir: Where `prepare` keeps what is costly to make.
    """

    config_type: ClassVar[type[TaskConfig]]

    def __init__(self, config: ConfigT, *, seed: int, cache_dir: Path) -> None:
        self.config = config
        self.seed = seed
        self.cache_dir = Path(cache_dir)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if ABC in cls.__bases__:
            return
        config_type = getattr(cls, "config_type", None)
        if not (isinstance(config_type, type) and issubclass(config_type, TaskConfig)):
            raise TypeError(
                f"{cls.__name__} needs a class attribute config_type, a subclass of TaskConfig"
            )
        if len(typing.get_args(config_type.model_fields["kind"].annotation)) != 1:
            raise TypeError(
                f'{config_type.__name__}.kind must be a Literal of one name: Literal["x"]'
            )

    @abstractmethod
    def prepare(self) -> None:
        """Read, tokenise and draw everything the other methods need; cached and idempotent.

        Raises:
            InputError: The data is missing, unreadable, or too little for three splits.
        """

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """sha256 over data, tokenizer, windows and masks: equal if and only if trials compare."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return JSON facts about the data: source, documents and tokens per split."""

    @abstractmethod
    def build_model(self, spec: EncoderSpec) -> nn.Module:
        """Return a fresh model with attributes `encoder` and `head`, in float32 on the CPU."""

    @abstractmethod
    def train_batch(self, step: int, *, seed: int, batch_size: int) -> Batch:
        """Return the batch of one step: a pure function of the arguments, on the CPU."""

    @abstractmethod
    def evaluation_batches(self, split: Split, batch_size: int) -> Iterator[Batch]:
        """Yield a split's fixed examples in order, on the CPU."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean loss over the batch's targets, a scalar; no host synchronisation."""

    @abstractmethod
    def records(self, model: nn.Module, batch: Batch) -> Batch:
        """Return what metrics need, one tensor per name with one row per target.

        Always there: "document" (int64), the document or section each target comes from.
        """

    @abstractmethod
    def probe_contexts(self, n: int) -> LongTensor:
        """Return n full-length inputs of the selection split, unchanged, (n, seq_len)."""

    @abstractmethod
    def probe_vocabulary(self) -> LongTensor:
        """Return the ids that a probe may put into a context."""


@cache
def task_registry() -> Registry[Task[Any]]:
    """Return the tasks that are installed or registered."""
    return Registry("search.tasks.v1", contract=lambda: Task, noun="task", unknown_error=InputError)


AnyTask = Annotated[TaskConfig, RegistryUnion(task_registry())]
"""The config of any registered task."""


def build_task(config: TaskConfig, *, seed: int, cache_dir: Path) -> Task[Any]:
    """Return the task of a config, not yet prepared.

    Raises:
        InputError: No such task.
    """
    return task_registry().load(config.kind)(config, seed=seed, cache_dir=cache_dir)
