"""Multi-query associative recall: say which value stood beside each of several keys.

MQAR, after Arora et al. 2023 (arXiv 2312.04927, "Zoology"). It is attention's home ground: where
the answer stands is known only from the tokens, so no layer whose weights do not depend on them
can fetch it. Stacks of such layers can still do without, by comparing everything with everything
in their feed-forward layers, as long as there are few pairs.

An example is made of pairs and queries: ``k1 v1 k2 v2 ... kP vP`` and then, scattered over the rest
of the sequence, each key once more. The target at such a query is the value of its key. Keys,
values and their order are drawn anew for each example, so nothing is to be learned about them.
With `spread`, so many blanks, an id of their own, lie at random before, between and after the
pairs, so that a table of weights by position does not know where to read.

The field's form is causal: a model reads from left to right and predicts what follows the query.
Carried over to encoders that read both sides: the pairs stand first and the queries after them as
there, but nothing follows a query that could give its answer away. Each value stands in the input
exactly once, beside its key among the pairs; a query is its key alone, and the rest is filled with
ids that are neither keys nor values of the example. So seeing both sides is of no help, and the
model has to say the value in the query's own place. Queries may stand at any place, not only at
every other one, since no answer stands between them.

Splits are disjoint by construction: the sum of an example's value ids, modulo 3, says whose it is,
so two examples of different splits never have the same values, and never the same sequence. The
sum does not say which key has which value, and all values stand in the input, so it is no hint.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from mixers.config import Since
from search.data.seeding import generator
from search.data.splits import SPLITS, Split
from search.tasks.base import Batch, TaskConfig, TaskSizes
from search.tasks.mqar_examples import Recall, RecallSizes, draw_examples
from search.tasks.prediction import TokenPrediction

if TYPE_CHECKING:
    from torch import LongTensor

GENERATOR = "mqar 1"
"""Name of the way examples are drawn; it changes with them, and so does the fingerprint."""


class MqarConfig(TaskConfig):
    """Multi-query associative recall."""

    kind: Literal["mqar"] = "mqar"
    vocab_size: Annotated[int, Field(ge=6, le=2**16)] = 64
    """Number of token ids; the first half are keys, the others values."""
    seq_len: Annotated[int, Field(ge=3)] = 64
    """Tokens in an example."""
    n_pairs: Annotated[int, Field(ge=1)] = 8
    """Pairs of key and value in an example; each key is asked for once."""
    spread: Annotated[int, Field(ge=0), Since(3)] = 0
    """Blanks (the last id, which is then no value) scattered among the pairs, so that no pair has a
    place of its own; 0 = the pairs stand first, one behind the other."""
    gap_power: Annotated[float, Field(gt=0.0, le=1.0)] = 0.01
    """How queries lie behind the pairs: at distance g with probability proportional to g to the
    power of gap_power - 1. 1 = anywhere alike; small = mostly near, as words of a text recur."""
    evaluation_examples: Annotated[int, Field(ge=1)] = 512
    """Examples to read of the selection split at every validation."""
    test_examples: Annotated[int, Field(ge=1)] = 2048
    """Examples to read of the test split."""

    @model_validator(mode="after")
    def check_sizes(self) -> Self:
        """Refuses sizes that no example can have."""
        least = 3 * self.n_pairs + self.spread
        if self.seq_len < least:
            among = f" and {self.spread} blanks among them" if self.spread else ""
            raise PydanticCustomError(
                "does_not_fit",
                "{n_pairs} pairs{among} and a query of each need seq_len {least} or more; it is "
                "{seq_len}",
                {"n_pairs": self.n_pairs, "among": among, "least": least, "seq_len": self.seq_len},
            )
        # Three values at least, since their sum modulo 3 says whose an example is.
        least = max(2 * self.n_pairs + 2, 6) + bool(self.spread)
        if self.vocab_size < least:
            raise PydanticCustomError(
                "does_not_fit",
                "{n_pairs} pairs need vocab_size {least} or more, so that keys and values are left "
                "to fill with; it is {vocab_size}",
                {
                    "n_pairs": self.n_pairs,
                    "least": least,
                    "vocab_size": self.vocab_size,
                },
            )
        return self

    @property
    def sizes(self) -> TaskSizes:
        """The encoder sizes that follow from this config alone."""
        return TaskSizes(vocab_size=self.vocab_size, max_seq_len=self.seq_len)


class AssociativeRecall(TokenPrediction[MqarConfig]):
    """Multi-query associative recall; see `MqarConfig`, the module's text and `TokenPrediction`.

    Examples are independent of each other, while the queries of one example are not. So each
    example is a document of its own, numbered in order: what is resampled by document is whole
    examples, neighbours together where they are put into groups.
    """

    config_type: ClassVar[type[TaskConfig]] = MqarConfig

    def prepare(self) -> None:
        """Draw the examples of the evaluation; there is nothing to read."""
        self.evaluation  # noqa: B018 (drawn and kept)

    @property
    def recall_sizes(self) -> RecallSizes:
        """Sizes of an example."""
        config = self.config
        return RecallSizes(
            config.vocab_size, config.seq_len, config.n_pairs, config.gap_power, config.spread
        )

    @functools.cached_property
    def evaluation(self) -> dict[Split, Recall]:
        """Each split's fixed examples."""
        config = self.config
        return {
            split: draw_examples(
                config.test_examples if split == "test" else config.evaluation_examples,
                split,
                self.recall_sizes,
                generator(f"mqar evaluation {split}", self.seed),
            )
            for split in SPLITS
        }

    @functools.cached_property
    def fingerprint(self) -> str:
        """sha256 over the way examples are drawn, their sizes and those of the evaluation."""
        total = hashlib.sha256(f"{GENERATOR} {self.recall_sizes}".encode())
        for split in SPLITS:
            drawn = self.evaluation[split]
            for array in (drawn.ids, drawn.columns, drawn.values):
                total.update(str(array.shape).encode())
                total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return JSON facts: source, split rule, and per split examples and targets."""
        return {
            "task": self.config.kind,
            "source": "drawn from the seed",
            "split_by": "sum of the values' ids modulo 3",
            "vocabulary": self.config.vocab_size,
            "splits": {
                split: {
                    "evaluation_examples": len(drawn.ids),
                    "evaluation_targets": drawn.values.size,
                    "evaluation_documents": len(drawn.ids),
                }
                for split, drawn in self.evaluation.items()
            },
        }

    def train_batch(self, step: int, *, seed: int, batch_size: int) -> Batch:
        """Return the batch of one step: a pure function of the arguments."""
        rng = generator("mqar training", seed, step)
        return tensors(draw_examples(batch_size, "train", self.recall_sizes, rng))

    def evaluation_batches(self, split: Split, batch_size: int) -> Iterator[Batch]:
        """Yield a split's fixed examples in order; they depend on the study seed."""
        import torch

        drawn = self.evaluation[split]
        for start in range(0, len(drawn.ids), batch_size):
            rows = slice(start, start + batch_size)
            part = Recall(drawn.ids[rows], drawn.columns[rows], drawn.values[rows])
            documents = np.arange(start, start + len(part.ids), dtype=np.int64)
            documents = documents.repeat(self.config.n_pairs)
            yield {**tensors(part), "target_document": torch.from_numpy(documents)}

    def probe_contexts(self, n: int) -> LongTensor:
        """Return n examples of the selection split, (n, seq_len) int64."""
        import torch

        rng = generator("mqar probe", self.seed)
        drawn = draw_examples(n, "selection", self.recall_sizes, rng)
        return torch.from_numpy(drawn.ids)  # type: ignore[return-value]

    def probe_vocabulary(self) -> LongTensor:
        """Return all ids, ascending."""
        import torch

        return torch.arange(self.config.vocab_size)  # type: ignore[return-value]


def tensors(drawn: Recall) -> Batch:
    """Return examples as a batch, targets by row and column."""
    import torch

    rows = np.arange(len(drawn.ids), dtype=np.int64)[:, None] * drawn.ids.shape[1]
    return {
        "ids": torch.from_numpy(drawn.ids),
        "target_index": torch.from_numpy((rows + drawn.columns).reshape(-1)),
        "target_ids": torch.from_numpy(drawn.values.reshape(-1)),
    }
