"""What the mixers are held against: PyTorch's primitives and plain forms of other code bases."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, glu, pad

from mixers.builtin.hardmax_shift import HardmaxShift
from mixers.builtin.lightconv import LightweightConvolution


class DepthwiseConvolution(nn.Module):
    """`conv1d(groups=d)` alone, on the layout that it likes: (B, D, N)."""

    def __init__(self, d_model: int, kernel_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, 1, kernel_size))
        self.sides = ((kernel_size - 1) // 2, kernel_size // 2)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the convolution, (B, D, N)."""
        return conv1d(pad(x, self.sides), self.weight, groups=len(self.weight))


class TorchAttention(nn.Module):
    """PyTorch's module around its fused primitive."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the update."""
        out: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return out


class BertAttention(nn.Module):
    """Hugging Face's BERT layer on the fused primitive, up to where our mixer ends."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertAttention as Layer

        layer = Layer(
            BertConfig(
                hidden_size=d_model,
                num_attention_heads=n_heads,
                attention_probs_dropout_prob=0.0,
                attn_implementation="sdpa",
            )
        )
        self.attention, self.out = layer.self, layer.output.dense

    def forward(self, x: Tensor) -> Tensor:
        """Returns the update."""
        out: Tensor = self.out(self.attention(x)[0])
        return out


class BandedLightConvolution(nn.Module):
    """LightConv in the banded form of Wu et al. 2019, appendix: one N x N band per head and row.

    Each sequence gets a copy of every head's band, (B H, N, N), and one batched product takes them.
    """

    def __init__(self, ours: LightweightConvolution) -> None:
        super().__init__()
        self.ours = ours

    def forward(self, x: Tensor) -> Tensor:
        """Returns the update."""
        ours = self.ours
        batch, n, d_model = x.shape
        gated = glu(ours.gate(x))
        heads, taps = ours.filters.shape
        weights = ours.filters.softmax(-1).expand(batch, n, -1, -1).permute(0, 2, 1, 3)
        line = pad(weights.reshape(batch * heads, n, taps), (0, n)).flatten(1)
        wide = line[:, : n * (n + taps - 1)].view(batch * heads, n, n + taps - 1)
        band = wide.narrow(2, ours.before, n)
        by_head = gated.view(batch, n, heads, -1).transpose(1, 2).reshape(batch * heads, n, -1)
        mixed = band.bmm(by_head).view(batch, heads, n, -1).transpose(1, 2)
        out: Tensor = ours.out(mixed.reshape(batch, n, d_model))
        return out


class SquareHardmaxShift(nn.Module):
    """The selective shift as the paper writes it: a hardmax over an N x N matrix per head."""

    def __init__(self, ours: HardmaxShift) -> None:
        super().__init__()
        self.ours = ours

    def forward(self, x: Tensor) -> Tensor:
        """Returns the update."""
        scores = (x @ self.ours.score.T).mT
        amount = self.chosen(scores, self.ours.lower) - self.chosen(scores, self.ours.upper)
        return amount.mT @ self.ours.direction.T

    def chosen(self, scores: Tensor, threshold: Tensor) -> Tensor:
        """Returns psi(s; b), (B, H, N)."""
        square = (scores - threshold[:, None])[..., None] * scores[..., None, :]
        hits = (square == square.amax(-1, keepdim=True)).to(scores.dtype)
        return (hits / hits.sum(-1, keepdim=True) @ scores[..., None])[..., 0]


def fourier_primitive(x: Tensor) -> Tensor:
    """PyTorch's transform alone."""
    whole: Tensor = torch.fft.fft2(x, dim=(1, 2), norm="ortho")
    return whole.real
