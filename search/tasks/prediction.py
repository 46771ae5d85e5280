"""What tasks have in common whose targets are tokens at chosen places of a sequence."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Literal

from search.errors import InputError
from search.tasks.base import Batch, ConfigT, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from mixers.spec import EncoderSpec


class TokenPrediction(Task[ConfigT], ABC):
    """A task whose model scores all tokens at the targets' places, by cross-entropy.

    Batches hold "ids" (B, N), "target_index" (T,) flat places `row * N + column` of the targets
    and "target_ids" (T,); "mask" (B, N) only where something is padded; evaluation batches also
    "target_document" (T,). All are int64 but the mask (bool).
    """

    @property
    def head(self) -> Literal["tied", "bert"]:
        """What scores the tokens; see `TokenPredictor`."""
        return "tied"

    def build_model(self, spec: EncoderSpec) -> nn.Module:
        """Return a fresh `TokenPredictor`.

        Raises:
            InputError: The spec has fewer ids or positions than the task needs.
        """
        from search.tasks.prediction_model import TokenPredictor

        sizes = self.config.sizes
        for name in ("vocab_size", "max_seq_len"):
            if getattr(spec, name) < getattr(sizes, name):
                raise InputError(
                    f"encoder.{name}: {getattr(spec, name)} is less than the task's "
                    f"{getattr(sizes, name)}"
                )
        return TokenPredictor(spec, self.head)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean cross-entropy per target in nats; 0 for a batch without targets."""
        from torch.nn.functional import cross_entropy

        logits = model(batch["ids"], batch["target_index"], batch.get("mask"))
        # A mean over nothing is NaN; the shape is known without asking the device.
        total = cross_entropy(logits.float(), batch["target_ids"], reduction="sum")
        return total / max(1, batch["target_ids"].shape[0])

    def records(self, model: nn.Module, batch: Batch) -> Batch:
        """Return "nll" (float32, nats), "correct" (bool) and "document" (int64) per target."""
        from torch.nn.functional import cross_entropy

        logits = model(batch["ids"], batch["target_index"], batch.get("mask")).float()
        targets = batch["target_ids"]
        return {
            "nll": cross_entropy(logits, targets, reduction="none"),
            "correct": logits.argmax(dim=-1) == targets,
            "document": batch["target_document"],
        }
