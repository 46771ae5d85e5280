"""A task that trains in milliseconds: is a marked token more frequent than another?"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

VOCAB, SEQ_LEN, WINDOWS = 12, 8, 24


class ToyModel(nn.Module):
    """An encoder-like embedding with one mixing layer, and a head over the vocabulary."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Embedding(VOCAB, 16), nn.Linear(16, 16), nn.Dropout(dropout), nn.LayerNorm(16)
        )
        self.head = nn.Linear(16, VOCAB)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.encoder(ids)
        out: Tensor = self.head(hidden + hidden.mean(dim=1, keepdim=True))
        return out


class ToyTask:
    """Predict the first token of the sequence at every position; batches are pure functions."""

    def train_batch(self, step: int, *, seed: int, batch_size: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        ids = torch.randint(VOCAB, (batch_size, SEQ_LEN), generator=generator)
        return {"ids": ids, "labels": ids[:, :1].expand(-1, SEQ_LEN)}

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(
            model(batch["ids"]).flatten(0, 1), batch["labels"].flatten()
        )

    def evaluation_batches(self, split: str, batch_size: int) -> Iterator[dict[str, Tensor]]:
        offset = {"train": 1, "selection": 2, "test": 3}[split]
        yield self.train_batch(offset, seed=10**6, batch_size=WINDOWS)

    @torch.no_grad()
    def read(self, model: nn.Module) -> dict[str, float]:
        model.eval()
        losses = [self.loss(model, b).item() for b in self.evaluation_batches("selection", WINDOWS)]
        return {"loss": float(np.mean(losses))}
