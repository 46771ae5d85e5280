"""The selective shift of the universality proof, as a trainable O(N) layer."""

from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from mixers.base import TokenMixer, zero_padding
from mixers.config import MixerConfig, MixerTraits


class HardmaxShiftConfig(MixerConfig):
    """Config of `hardmax_shift`.

    Attributes:
        n_heads: Heads, each with its own score, thresholds and direction; by default half of
            `d_model`.
        rule: "shift" moves the tokens inside a window (the paper's Psi), "sign" moves all tokens,
            by the maximum above the threshold and by the minimum below it (its psi).
        surrogate_width: Width of the sigmoid whose gradient stands in for that of the step, in
            units of the score; the output does not depend on it.
    """

    kind: Literal["hardmax_shift"] = "hardmax_shift"
    n_heads: Annotated[int, Field(ge=1)] | None = None
    rule: Literal["shift", "sign"] = "shift"
    surrogate_width: Annotated[float, Field(gt=0.0)] = 0.5

    def resolve(self, *, d_model: int, max_seq_len: int) -> Self:
        """Fill in `n_heads`."""
        if self.n_heads is not None:
            return self
        return self.model_copy(update={"n_heads": max(1, d_model // 2)})


class HardmaxShift(TokenMixer[HardmaxShiftConfig]):
    """Attention with hardmax and head size 1, in closed form (Yun et al. 2020, appendix B.5).

    With scores s = u^T X of one head, psi(s_j; b) is max s where s_j > b, min s where s_j < b, and
    the mean of s where s_j = b: there the score row ties over all keys and the paper's hardmax
    gives each 1/n. Rule "sign" is v psi(s_j; b); rule "shift" is
    v [psi(s_j; b) - psi(s_j; b')], which is v (max s - min s) for b < s_j < b' and 0 outside.
    Max, min and mean run over real tokens (over those up to j with `causal`).

    Taken as max and min this is O(N), not the N x N matrix. The step in s_j gets the gradient of a
    sigmoid of width `surrogate_width` (straight-through; its own is zero everywhere), all else its
    true gradient. The lower thresholds start at the quantiles 0 to 1/2 of N(0, 1), the upper ones
    half a distribution further, so about half of normalised tokens are inside each window.
    Thresholds are free: should they cross, the same formula shifts by -(max s - min s).

    Shapes: x (B, N, D), scores (B, N, H); `score` u (H, D), `direction` v (D, H), `lower` b and
    `upper` b' (H,).
    """

    config_type: ClassVar[type[MixerConfig]] = HardmaxShiftConfig
    symbol: ClassVar[str] = "H"

    def __init__(
        self, config: HardmaxShiftConfig, *, d_model: int, max_seq_len: int, causal: bool = False
    ) -> None:
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        n_heads = self.config.n_heads
        assert n_heads is not None
        self.score = nn.Parameter(torch.empty(n_heads, d_model))
        self.direction = nn.Parameter(torch.empty(d_model, n_heads))
        nn.init.normal_(self.score, std=d_model**-0.5)
        # Max s - min s is about 5 for 64 tokens: the factor brings the update near other mixers'.
        nn.init.normal_(self.direction, std=0.1 * n_heads**-0.5)
        shares = (torch.arange(n_heads) + 0.5) / (2 * n_heads)
        if self.config.rule == "shift":
            self.lower = nn.Parameter(torch.special.ndtri(shares))
            self.upper = nn.Parameter(torch.special.ndtri(shares + 0.5))
        else:
            self.lower = nn.Parameter(torch.special.ndtri(shares + 0.25))

    @classmethod
    def traits(cls, config: HardmaxShiftConfig) -> MixerTraits:
        """Return the claims."""
        return MixerTraits(
            reach="global",
            linear=False,
            position_aware=False,
            causal=True,
            fixed_length=False,
            surrogate_gradient=True,
            cost="n",
            source="Yun et al. 2020 (arXiv 1912.10077), appendix B.5: selective shift",
        )

    @classmethod
    def flops(cls, config: HardmaxShiftConfig, *, d_model: int, seq_len: int) -> int:
        """Return those of the scores and of the shifts; max, min and mean are not counted."""
        n_heads = config.resolve(d_model=d_model, max_seq_len=seq_len).n_heads
        assert n_heads is not None
        return 4 * seq_len * d_model * n_heads

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the update."""
        scores = zero_padding(x, mask) @ self.score.T
        high, low, mean = self.extremes(scores, mask)
        amount = self.select(scores, self.lower, high, low, mean)
        if self.config.rule == "shift":
            amount = amount - self.select(scores, self.upper, high, low, mean)
        return amount @ self.direction.T

    def extremes(self, scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return max, min and mean over real tokens, each broadcastable to (B, N, H).

        Where there is no real token (yet), all three are 0.
        """
        if mask is None:
            mask = scores.new_ones(scores.shape[:2], dtype=torch.bool)
        real = mask[..., None]
        above, below = scores.masked_fill(~real, -torch.inf), scores.masked_fill(~real, torch.inf)
        known = scores.masked_fill(~real, 0.0)
        if self.causal:
            count = real.cumsum(1)
            high, low = above.cummax(1).values, below.cummin(1).values
            mean = known.cumsum(1) / count.clamp(min=1)
        else:
            count = real.sum(1, keepdim=True)
            high, low = above.amax(1, keepdim=True), below.amin(1, keepdim=True)
            mean = known.sum(1, keepdim=True) / count.clamp(min=1)
        return high.where(count > 0, 0.0), low.where(count > 0, 0.0), mean

    def select(
        self, scores: Tensor, threshold: Tensor, high: Tensor, low: Tensor, mean: Tensor
    ) -> Tensor:
        """Return psi(s; b), (B, N, H): exact values, and a gradient for the step."""
        chosen = torch.where(scores > threshold, high, torch.where(scores < threshold, low, mean))
        soft = torch.sigmoid((scores - threshold) / self.config.surrogate_width)
        # soft - soft is exactly 0, so the value stays the chosen one.
        return chosen + (high - low).detach() * (soft - soft.detach())
