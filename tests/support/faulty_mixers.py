"""Mixers that claim what they do not do, one fault each; the conformance kit must catch them all.

`FAULTS` maps each class to the checks that fail: first the one meant for the fault, then those it
brings down with it. `Honest` is the same mixer without a fault.
"""

from typing import Any, ClassVar, Literal

import torch
from pydantic import field_serializer
from torch import Tensor, nn

from mixers import MixerConfig, MixerError, MixerTraits, TokenMixer, zero_padding


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
        return self.out(zero_padding(x, mask).mean(1, keepdim=True).expand_as(x))


class DividesByNothing(Honest):
    claims: ClassVar[dict[str, Any]] = {
        "reach": "global", "position_aware": False, "causal": False
    }  # fmt: skip

    def forward(self, x, mask=None):
        count = x.shape[1] if mask is None else mask.sum(1)[:, None, None]
        return self.out((zero_padding(x, mask).sum(1, keepdim=True) / count).expand_as(x))


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


class MaskAfterSum(Honest):
    """Padding is cleared from the output, when it has long entered the sum."""

    def forward(self, x, mask=None):
        return zero_padding(self.out(x + self.neighbours(x)), mask)


class MisplacedWindow(Honest):
    """As wide as declared, but on the other side."""

    claims: ClassVar[dict[str, Any]] = {"causal": False}

    @classmethod
    def connections(cls, config, *, seq_len, causal=False):
        places = torch.arange(seq_len)
        return ((places[:, None] - places) >= 0) & ((places[:, None] - places) <= 1)

    def neighbours(self, x):
        return torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], 1)


class LeaksFaintly(Honest):
    """Sees every token, weighed too lightly for any replaced token to show."""

    def forward(self, x, mask=None):
        x = zero_padding(x, mask)
        return self.out(x + self.neighbours(x) + 1e-13 * x.sum(1, keepdim=True))


class HiddenQuadratic(Honest):
    """An N x N product that is small at the length at which FLOPs are compared."""

    def forward(self, x, mask=None):
        first = zero_padding(x, mask)[..., :1]  # 2 N^2 FLOPs
        return super().forward(x, mask) + 0.0 * (first @ first.mT).sum(-1, keepdim=True)

    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return super().flops(config, d_model=d_model, seq_len=seq_len) + 16 * seq_len * d_model


class FailsAtFive(Honest):
    def forward(self, x, mask=None):
        if x.shape[1] == 5:
            raise RuntimeError("five tokens")
        return super().forward(x, mask)


class CompiledDiffers(Honest):
    def forward(self, x, mask=None):
        return super().forward(x, mask) * (2.0 if torch.compiler.is_compiling() else 1.0)


class SharesItsCopy(Honest):
    def __deepcopy__(self, memo):
        return self


def hidden_config():
    class HiddenConfig(HonestConfig):
        pass

    return HiddenConfig


class LocalConfig(Honest):
    """Its config is defined in a function, where unpickling cannot find it."""

    config_type: ClassVar[type[MixerConfig]] = hidden_config()


class RoundedConfig(HonestConfig):
    scale: float = 0.25

    @field_serializer("scale")
    def rounded(self, scale: float) -> float:
        return round(scale, 1)


class ForgetsDigits(Honest):
    config_type: ClassVar[type[MixerConfig]] = RoundedConfig


class GradientOfRoot(Honest):
    """Fine at every token but zero, where the derivative of the root is infinite."""

    claims: ClassVar[dict[str, Any]] = {"linear": False}

    def forward(self, x, mask=None):
        x = zero_padding(x, mask)
        size = x.square().sum(-1, keepdim=True).sqrt()
        return self.out((x + self.neighbours(x)) * size)


class HugeMaskConstant(Honest):
    """Adds a number that half precision does not have, instead of choosing."""

    claims: ClassVar[dict[str, Any]] = {
        "reach": "global", "position_aware": False, "causal": False, "linear": False
    }  # fmt: skip

    def forward(self, x, mask=None):
        x = zero_padding(x, mask)
        scores = x.sum(-1)
        if mask is not None:
            scores = scores + torch.where(mask, 0.0, -1e30).to(x.dtype)
        mean = (scores.softmax(-1)[..., None] * x).sum(1, keepdim=True)
        return self.out(mean.expand_as(x))


class LeaksWhenCausal(Honest):
    """Clears the padding, but not in its causal form."""

    def forward(self, x, mask=None):
        x = zero_padding(x, None if self.causal else mask)
        return self.out(x + self.neighbours(x))


class RefusesItsBound(Honest):
    """Takes one token fewer than it was built for."""

    claims: ClassVar[dict[str, Any]] = {"fixed_length": True}

    def forward(self, x, mask=None):
        if x.shape[1] >= self.max_seq_len:
            raise MixerError(f"built for {self.max_seq_len} tokens, got {x.shape[1]}")
        return super().forward(x, mask)


RUN = (
    "shape_and_dtype", "batch_and_length", "same_seed_same_output",
    "every_parameter_gets_gradient", "derivative", "padding_content", "padding_amount", "empty_row",
    "batch_independence", "training_mode", "memory_layout", "random_state", "placement",
    "position_aware", "causal", "reach", "reach_of_gradient", "linear",
    "fixed_length", "flops", "cost", "reference", "state_round_trip", "deep_copy", "compiled",
)  # fmt: skip
"""All checks that run the mixer."""
KEEP_THE_SHAPE = (
    "same_seed_same_output", "empty_row", "random_state", "placement", "linear", "flops", "cost",
    "state_round_trip", "deep_copy",
)  # fmt: skip
"""Those of them that hold, or fail to fail, where the output is one token short."""
COMPARE_TWO_RUNS = (
    "derivative", "memory_layout", "padding_content", "padding_amount", "empty_row",
    "batch_independence", "causal", "reach", "linear", "reference", "state_round_trip",
    "deep_copy", "compiled",
)  # fmt: skip

FAULTS: dict[type[Honest], tuple[str, ...]] = {
    LooksAhead: ("causal", "reach", "reach_of_gradient"),
    ReachesTooFar: ("reach", "reach_of_gradient"),
    ClaimsTooMuchReach: ("reach",),
    ClaimsGlobal: ("reach",),
    ClaimsNonLinear: ("linear",),
    SecretlyNonLinear: ("linear",),
    ClaimsEquivariant: ("position_aware",),
    ClaimsPositionAware: ("position_aware",),
    MultipliesByMask: ("padding_content",),
    BiasLeaksIntoWindow: ("padding_amount",),
    CountsPadding: ("padding_amount",),
    DividesByNothing: ("empty_row", "shape_and_dtype"),
    # Rows that see each other see each other's padding and future, too.
    SeesOtherRows: ("batch_independence", "padding_amount", "empty_row", "causal", "reach"),
    # A batch of one beside a batch of several: whatever compares the two.
    BranchesOnBatchSize: ("batch_independence", "empty_row", "causal", "reach"),
    Float32Inside: ("shape_and_dtype", "linear", "derivative"),
    WritesToInput: (
        "shape_and_dtype", "same_seed_same_output", "padding_amount", "empty_row",
        "batch_independence", "causal", "reach", "linear", "reference", "state_round_trip",
        "deep_copy", "derivative", "memory_layout",
    ),
    UnusedParameter: ("every_parameter_gets_gradient",),
    HiddenState: ("state_round_trip", "placement"),
    RandomForward: ("same_seed_same_output", "random_state", "placement", *COMPARE_TWO_RUNS),
    CheapFlops: ("flops",),
    DearFlops: ("flops",),
    QuadraticFlops: ("cost",),
    # Its table of places ends where the padded input goes on.
    BoundToLength: ("fixed_length", "padding_amount"),
    ClaimsFixedLength: ("fixed_length",),
    AcceptsCausal: ("causal",),
    OtherReference: ("reference",),
    Shrinks: tuple(name for name in RUN if name not in KEEP_THE_SHAPE),
    Raises: ("reach", *RUN),
    MaskAfterSum: ("padding_content", "padding_amount"),
    MisplacedWindow: ("reach", "reach_of_gradient"),
    LeaksFaintly: ("reach_of_gradient",),
    HiddenQuadratic: ("cost", "flops"),
    FailsAtFive: ("batch_and_length",),
    CompiledDiffers: ("compiled",),
    SharesItsCopy: ("deep_copy",),
    LocalConfig: ("config_pickle",),
    ForgetsDigits: ("config_round_trip",),
    GradientOfRoot: ("every_parameter_gets_gradient",),
    HugeMaskConstant: ("shape_and_dtype",),
    LeaksWhenCausal: ("padding_content", "padding_amount"),
    # Whatever takes as many tokens as the mixer was built for.
    RefusesItsBound: (
        "batch_and_length", "padding_amount", "position_aware", "reach", "flops", "cost",
        "reference",
    ),
}  # fmt: skip
