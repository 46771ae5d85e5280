"""Mixers that claim what they do not do, one fault each; the conformance kit must catch them all.

`FAULTS` maps each class to the check that finds it. `Honest` is the same mixer without a fault.
"""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from mixers import MixerConfig, MixerTraits, TokenMixer, zero_padding


class HonestConfig(MixerConfig):
    kind: Literal["local.honest"] = "local.honest"


class Honest(TokenMixer[HonestConfig]):
    """Projection of the token itself and its left neighbour."""

    config_type: ClassVar[type[MixerConfig]] = HonestConfig
    claims: ClassVar[dict[str, Any]] = {}

    def __init__(self, config, *, d_model, max_seq_len, causal=False):
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len, causal=causal)
        self.out = nn.Linear(d_model, d_model)

    @classmethod
    def traits(cls, config):
        return MixerTraits(
            **{
                "reach": 1,
                "linear": True,
                "position_aware": True,
                "causal": True,
                "fixed_length": False,
                "cost": "n",
                "source": "test",
            }
            | cls.claims
        )

    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return 2 * seq_len * d_model**2

    def neighbours(self, x: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)

    def forward(self, x, mask=None):
        x = zero_padding(x, mask)
        return self.out(x + self.neighbours(x))


class LooksAhead(Honest):
    def neighbours(self, x):
        return torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], 1)


class ReachesTooFar(Honest):
    def neighbours(self, x):
        return torch.cat([torch.zeros_like(x[:, :2]), x[:, :-2]], 1)[:, : x.shape[1]]


class ClaimsTooMuchReach(Honest):
    claims: ClassVar[dict[str, Any]] = {"reach": 3}


class ClaimsGlobal(Honest):
    claims: ClassVar[dict[str, Any]] = {"reach": "global"}


class ClaimsNonLinear(Honest):
    claims: ClassVar[dict[str, Any]] = {"linear": False}


class SecretlyNonLinear(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, mask).tanh()


class ClaimsEquivariant(Honest):
    claims: ClassVar[dict[str, Any]] = {"position_aware": False}


class ClaimsPositionAware(Honest):
    claims: ClassVar[dict[str, Any]] = {"reach": 0}

    def neighbours(self, x):
        return torch.zeros_like(x)


class MultipliesByMask(Honest):
    def forward(self, x, mask=None):
        x = x if mask is None else x * mask[..., None]
        return self.out(x + self.neighbours(x))


class BiasLeaksIntoWindow(Honest):
    def forward(self, x, mask=None):
        x = self.out(zero_padding(x, mask))
        return x + self.neighbours(x)


class CountsPadding(Honest):
    claims: ClassVar[dict[str, Any]] = {
        "reach": "global", "position_aware": False, "causal": False
    }  # fmt: skip

    def forward(self, x, mask=None):
        return self.out(zero_padding(x, mask).mean(1, keepdim=True)).expand_as(x)


class DividesByNothing(Honest):
    claims: ClassVar[dict[str, Any]] = {
        "reach": "global", "position_aware": False, "causal": False
    }  # fmt: skip

    def forward(self, x, mask=None):
        count = x.shape[1] if mask is None else mask.sum(1)[:, None, None]
        return self.out(zero_padding(x, mask).sum(1, keepdim=True) / count).expand_as(x)


class SeesOtherRows(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, mask) + zero_padding(x, mask)[:, :1].mean(0, keepdim=True)

    @classmethod
    def traits(cls, config):
        return super().traits(config).model_copy(update={"reach": "global"})


class BranchesOnBatchSize(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, mask) * (2.0 if len(x) == 1 else 1.0)


class Float32Inside(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, mask).float()


class WritesToInput(Honest):
    def forward(self, x, mask=None):
        out = super().forward(x.detach(), mask)
        x.data.add_(1.0)
        return out


class UnusedParameter(Honest):
    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.spare = nn.Parameter(torch.ones(3))


class HiddenState(Honest):
    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.scale = torch.randn(1).double()

    def forward(self, x, mask=None):
        return super().forward(x, mask) * self.scale.to(x.dtype)


class RandomForward(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, mask) * (1 + 1e-3 * torch.rand(1).to(x.dtype))


class CheapFlops(Honest):
    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return seq_len * d_model**2


class DearFlops(Honest):
    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return 4 * seq_len * d_model**2


class QuadraticFlops(Honest):
    claims: ClassVar[dict[str, Any]] = {"cost": "n^2"}


class BoundToLength(Honest):
    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.places = nn.Parameter(torch.ones(sizes["max_seq_len"], 1))

    def forward(self, x, mask=None):
        return super().forward(x, mask) * self.places[: x.shape[1]]


class ClaimsFixedLength(Honest):
    claims: ClassVar[dict[str, Any]] = {"fixed_length": True}


class AcceptsCausal(Honest):
    """Does not claim causal, but builds causal all the same."""

    claims: ClassVar[dict[str, Any]] = {"causal": False}

    def __init__(self, config, *, d_model, max_seq_len, causal=False):
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len)


class OtherReference(Honest):
    def reference(self, x, mask=None):
        return self(x, mask) + 1e-3


class Shrinks(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, mask)[:, :-1] if x.shape[1] > 1 else super().forward(x, mask)


class Raises(Honest):
    def forward(self, x, mask=None):
        raise RuntimeError("out of luck")


FAULTS: dict[type[Honest], str] = {
    LooksAhead: "causal",
    ReachesTooFar: "reach",
    ClaimsTooMuchReach: "reach",
    ClaimsGlobal: "reach",
    ClaimsNonLinear: "linear",
    SecretlyNonLinear: "linear",
    ClaimsEquivariant: "position_aware",
    ClaimsPositionAware: "position_aware",
    MultipliesByMask: "padding_content",
    BiasLeaksIntoWindow: "padding_amount",
    CountsPadding: "padding_amount",
    DividesByNothing: "empty_row",
    SeesOtherRows: "batch_independence",
    BranchesOnBatchSize: "batch_independence",
    Float32Inside: "shape_and_dtype",
    WritesToInput: "shape_and_dtype",
    UnusedParameter: "every_parameter_gets_gradient",
    HiddenState: "state_round_trip",
    RandomForward: "same_seed_same_output",
    CheapFlops: "flops",
    DearFlops: "flops",
    QuadraticFlops: "cost",
    BoundToLength: "fixed_length",
    ClaimsFixedLength: "fixed_length",
    AcceptsCausal: "causal",
    OtherReference: "reference",
    Shrinks: "shape_and_dtype",
    Raises: "reach",
}
