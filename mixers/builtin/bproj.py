"""Bilinear projection: one fixed matrix over positions, one over features."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from mixers.base import TokenMixer, init_linear, zero_padding
from mixers.config import MixerConfig, MixerTraits
from mixers.errors import MixerError


class BilinearConfig(MixerConfig):
    """Config of `bproj`; it has no settings."""

    kind: Literal["bproj"] = "bproj"


class BilinearProjection(TokenMixer[BilinearConfig]):
    """The update W_O X W_P (Yun et al. 2020, equation 5), here `W_P.T @ x @ W_O.T + b_O`.

    W_P is bound to absolute positions and to `max_seq_len`: n shorter tokens use its leading
    n x n part, so padding on the right changes nothing, and longer input is refused. With `causal`
    only the entries that look back (W_P[i, j] with i <= j) are used.

    Shapes: x (B, N, D); W_P (max_seq_len, max_seq_len) without bias, W_O (D, D) with bias.
    """

    config_type: ClassVar[type[MixerConfig]] = BilinearConfig
    symbol: ClassVar[str] = "B"

    def __init__(
        self, config: BilinearConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.positions = nn.Parameter(torch.empty(max_seq_len, max_seq_len))
        nn.init.normal_(self.positions, std=max_seq_len**-0.5)
        self.out = init_linear(nn.Linear(d_model, d_model))

    @classmethod
    def traits(cls, config: BilinearConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach="global",
            linear=True,
            position_aware=True,
            causal=True,
            fixed_length=True,
            cost="n^2",
            source="Yun et al. 2020 (arXiv 1912.10077), equation (5): bilinear projection",
        )

    @classmethod
    def flops(cls, config: BilinearConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of both products."""
        return 2 * seq_len**2 * d_model + 2 * seq_len * d_model**2

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update.

        Raises:
            MixerError: The input is longer than `max_seq_len`.
        """
        seq_len = x.shape[1]
        if seq_len > self.max_seq_len:
            raise MixerError(
                f"bproj is bound to max_seq_len {self.max_seq_len}, got {seq_len} tokens; "
                "cut the input or build with a larger max_seq_len"
            )
        weights = self.positions[:seq_len, :seq_len]
        if self.causal:
            weights = weights.triu()
        x = zero_padding(x, mask)
        # For a matrix times a batch PyTorch copies the batch transposed, N x D a sequence; as a
        # batch of products the gradient of the weights is N x N a sequence before it is summed.
        if seq_len <= self.d_model:
            mixed = torch.bmm(weights.T.expand(x.shape[0], -1, -1), x)
        else:
            mixed = weights.T @ x
        out: Tensor = self.out(mixed)
        return out
