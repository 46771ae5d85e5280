"""Faults that no output of a fresh mixer in eval mode, on tidy input on one device, shows.

`OUT_OF_SIGHT` maps each class to the checks that fail, as `faulty_mixers.FAULTS` does.
"""

from typing import Any, ClassVar

import torch
from faulty_mixers import Honest
from torch import nn

from mixers import zero_padding


class LooksAheadInTraining(Honest):
    def neighbours(self, x):
        if not self.training:
            return super().neighbours(x)
        return torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], 1)


class BatchStatistics(Honest):
    """Centres by the batch at hand in training, by what was kept of batches afterwards."""

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.register_buffer("mean", torch.zeros(sizes["d_model"]))

    def forward(self, x, mask=None):
        mean = zero_padding(x, mask).mean((0, 1)) if self.training else self.mean
        return super().forward(x, mask) - mean


class SeesPaddingInTraining(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, None if self.training else mask)


class KeepsOldWeights(Honest):
    """Keeps the product of its first run in eval mode."""

    kept: Any = None

    def forward(self, x, mask=None):
        if self.training or torch.is_grad_enabled():
            return super().forward(x, mask)
        if self.kept is None or self.kept[0] != x.dtype:
            self.kept = (x.dtype, self.out.weight.clone(), self.out.bias.clone())
        x = zero_padding(x, mask)
        return nn.functional.linear(x + self.neighbours(x), *self.kept[1:])


class SharesItsWeights(Honest):
    """All mixers of one width are one."""

    shared: ClassVar[dict[int, nn.Linear]] = {}

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        if self.out.weight.device.type != "meta":
            self.out = self.shared.setdefault(sizes["d_model"], self.out)


class NewTensorOnDefaultDevice(Honest):
    def forward(self, x, mask=None):
        ones = torch.ones(x.shape[1], 1, dtype=x.dtype)
        return super().forward(x, mask) * ones


class NewTensorOnCpu(Honest):
    def forward(self, x, mask=None):
        ones = torch.ones(x.shape[1], 1, dtype=x.dtype, device="cpu")
        return super().forward(x, mask) * ones


class MaskOnCpu(Honest):
    def forward(self, x, mask=None):
        out = super().forward(x, mask)
        if mask is not None:
            out = out * torch.ones(mask.shape, dtype=x.dtype, device="cpu")[..., None]
        return out


class AnswersOnCpu(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, mask).cpu()


class KeepsPlainTensor(Honest):
    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.scale = torch.full((sizes["d_model"],), 2.0)

    def forward(self, x, mask=None):
        return super().forward(x, mask) * self.scale.to(x)


class NeedsContiguousInput(Honest):
    def forward(self, x, mask=None):
        return super().forward(x.view(-1, x.shape[-1]).view(x.shape), mask)


class WritesToMask(Honest):
    def forward(self, x, mask=None):
        out = super().forward(x, mask)
        if mask is not None:
            mask[:, 0] = False
        return out


class CutsInput(Honest):
    """Every parameter gets its gradient, what lies below gets none."""

    def forward(self, x, mask=None):
        return super().forward(x.detach(), mask)


class HalvesGradient(Honest):
    def neighbours(self, x):
        x = super().neighbours(x)
        return 0.5 * x + 0.5 * x.detach()


class CutsNeighbourWhenCausal(Honest):
    def neighbours(self, x):
        x = super().neighbours(x)
        return x.detach() if self.causal else x


class ClaimsSurrogate(Honest):
    claims: ClassVar[dict[str, Any]] = {"surrogate_gradient": True}


class Reseeds(Honest):
    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        torch.manual_seed(0)
        self.out = nn.Linear(sizes["d_model"], sizes["d_model"])


class DrawsForNothing(Honest):
    def forward(self, x, mask=None):
        torch.rand(1)
        return super().forward(x, mask)


class FailsAtSixtyFive(Honest):
    """One token more than its block holds."""

    def forward(self, x, mask=None):
        if x.shape[1] == 65:
            raise RuntimeError("one block and one token")
        return super().forward(x, mask)


class OddLengthsFail(Honest):
    def forward(self, x, mask=None):
        if x.shape[1] > 12 and x.shape[1] % 2:
            raise RuntimeError("cannot be halved")
        return super().forward(x, mask)


class DearWhenLong(Honest):
    """Half again the FLOPs of its N x N products, which are few of all where it is short."""

    claims: ClassVar[dict[str, Any]] = {
        "reach": "global", "position_aware": False, "causal": False, "linear": False,
        "cost": "n^2",
    }  # fmt: skip

    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return super().flops(config, d_model=d_model, seq_len=seq_len) + 6 * seq_len**2 * d_model

    def forward(self, x, mask=None):
        x = zero_padding(x, mask)
        scores = x @ x.mT
        if mask is not None:
            scores = torch.where(mask[:, None], scores, torch.finfo(x.dtype).min)
        return self.out(scores.softmax(-1) @ x)


class FractionalFlops(Honest):
    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return 2.0 * seq_len * d_model**2


OUT_OF_SIGHT: dict[type[Honest], tuple[str, ...]] = {
    LooksAheadInTraining: ("training_mode",),
    BatchStatistics: ("training_mode",),
    SeesPaddingInTraining: ("training_mode",),
    # A step of a weight moves nothing.
    KeepsOldWeights: ("state_round_trip", "derivative"),
    SharesItsWeights: ("deep_copy",),
    NewTensorOnDefaultDevice: ("placement",),
    MaskOnCpu: ("placement",),
    # FLOPs are counted on the device meta.
    NewTensorOnCpu: ("placement", "flops", "cost"),
    AnswersOnCpu: ("placement", "flops", "cost"),
    KeepsPlainTensor: ("placement",),
    NeedsContiguousInput: ("memory_layout",),
    # Whatever uses one mask twice.
    WritesToMask: (
        "shape_and_dtype", "memory_layout", "padding_content", "causal", "reference", "derivative",
        "empty_row", "batch_independence", "compiled",
    ),
    CutsInput: ("derivative",),
    HalvesGradient: ("derivative",),
    CutsNeighbourWhenCausal: ("derivative",),
    ClaimsSurrogate: ("derivative",),
    Reseeds: ("random_state",),
    DrawsForNothing: ("random_state",),
    FailsAtSixtyFive: ("batch_and_length",),
    OddLengthsFail: ("batch_and_length", "padding_amount", "fixed_length"),
    DearWhenLong: ("flops",),
    FractionalFlops: ("flops",),
}  # fmt: skip
