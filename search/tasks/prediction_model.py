"""An encoder with a tied head that scores the tokens of chosen places."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (the usual name)

from mixers.base import init_linear
from mixers.model import Encoder
from mixers.spec import EncoderSpec


class TiedHead(nn.Module):
    """Scores of all tokens for a hidden vector h: E h + b, E the encoder's token embedding.

    Press and Wolf 2017. It has no layer of its own, so a short run has less to learn.

    Args:
        vocab_size: Number of token ids.
    """

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        """Return logits, (T, D) and embedding (V, D) -> (T, V)."""
        return F.linear(hidden, embedding, self.bias)


class BertHead(nn.Module):
    """BERT's scores of all tokens for a hidden vector h: E LayerNorm(gelu(W h + c)) + b.

    E is the encoder's token embedding (tied; Devlin et al. 2019), W is d x d.

    Args:
        d_model: Features per token.
        vocab_size: Number of token ids.
        norm_eps: Epsilon of the LayerNorm.
    """

    def __init__(self, d_model: int, vocab_size: int, norm_eps: float) -> None:
        super().__init__()
        self.dense = init_linear(nn.Linear(d_model, d_model))
        self.norm = nn.LayerNorm(d_model, eps=norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        """Return logits, (T, D) and embedding (V, D) -> (T, V)."""
        return F.linear(self.norm(F.gelu(self.dense(hidden))), embedding, self.bias)


class TokenPredictor(nn.Module):
    """Encoder and head; only target positions reach the vocabulary projection.

    Args:
        spec: The encoder's spec.
        head: "tied" for `TiedHead`, "bert" for `BertHead`.
    """

    def __init__(self, spec: EncoderSpec, head: Literal["tied", "bert"]) -> None:
        super().__init__()
        self.encoder = Encoder(spec)
        self.head: nn.Module = (
            TiedHead(spec.vocab_size)
            if head == "tied"
            else BertHead(spec.d_model, spec.vocab_size, spec.norm_eps)
        )

    def forward(self, ids: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the logits of the targets, (T, V).

        Args:
            ids: Token ids, (B, N).
            places: Flat places `row * N + column` of the targets, (T,).
            mask: True = real token, (B, N); None = all are.
        """
        hidden = self.encoder(ids, mask)
        chosen = hidden.flatten(0, 1).index_select(0, places)
        return self.head(chosen, self.encoder.token_embedding.weight)  # type: ignore[no-any-return]
