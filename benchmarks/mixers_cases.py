"""The calls that `benchmarks.mixers` times in turn at one shape, and what is compared with what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import mixers
from benchmarks.mixers_peers import (
    BandedLightConvolution,
    BertAttention,
    DepthwiseConvolution,
    SquareHardmaxShift,
    TorchAttention,
    fourier_primitive,
)
from mixers.windowed import BLOCK, window_attention
from search.timing.stopwatch import Pass, pass_of

KERNEL_SIZE, N_FILTERS, WINDOW, D_HEAD, FEW_HEADS = 128, 16, 64, 64, 8
SQUARE = 1024
"""Side of the matrices whose product is the ceiling."""
COPIED = 2**24
"""Numbers of the copy that is the other ceiling."""

Call = Callable[[], object]
Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """Where a row was measured."""

    d_model: int
    batch: int
    seq_len: int
    dtype: str
    kind: Pass

    @property
    def name(self) -> str:
        """Batch and length."""
        return f"{self.batch} x {self.seq_len}"


@dataclass(frozen=True)
class Comparison:
    """One of ours beside a peer; the ratio is the peer's seconds over ours, round by round.

    Attributes:
        name: what a table calls it.
        ours: name of our call.
        peer: name of the peer's.
        minus: calls whose time is taken off ours first.
        bars: least ratio wanted, by number of tokens; 0 stands for every other.
        formats: dtypes that the bars are for.
        kinds: passes that the bars are for.
        weight: what the ratio is multiplied by: work of ours over work of the peer.
    """

    name: str
    ours: str
    peer: str
    minus: tuple[str, ...] = ()
    bars: dict[int, float] = field(default_factory=dict)
    formats: tuple[str, ...] = ("float32",)
    kinds: tuple[Pass, ...] = ("training",)
    weight: Callable[[Shape], float] = lambda _: 1.0

    @property
    def calls(self) -> tuple[str, ...]:
        """Names of all that it needs the time of."""
        return (self.ours, self.peer, *self.minus)


def matrix_share(kind: str) -> Callable[[Shape], float]:
    """FLOPs of a mixer's definition over those of the product that is the ceiling."""

    def weight(shape: Shape) -> float:
        mixer = type(mixers.build(kind, d_model=shape.d_model, max_seq_len=shape.seq_len))
        config = mixer.config_type(kind=kind)
        flops = mixer.flops(config, d_model=shape.d_model, seq_len=shape.seq_len)
        passes = 3 if shape.kind == "training" else 1
        return float(passes * shape.batch * flops / (2 * SQUARE**3))

    return weight


def copy_share(shape: Shape) -> float:
    """Numbers that are read and written once, over those of the copy that is the ceiling."""
    passes = 2 if shape.kind == "training" else 1
    return passes * shape.batch * shape.seq_len * shape.d_model / COPIED


ALL = 0
COMPARISONS = (
    Comparison(
        "`sepconv`, mixing step : `conv1d(groups=d)`",
        "sepconv",
        "conv1d",
        minus=("gate", "out"),
        bars={128: 8.0, 512: 5.0, 2048: 5.0},
    ),
    Comparison("`sepconv`, layer : on `conv1d`", "sepconv", "sepconv on conv1d", bars={ALL: 1.0}),
    Comparison(
        "`attention` : Hugging Face's BERT",
        "attention",
        "BERT attention",
        bars={ALL: 0.97},
        kinds=("forward", "training"),
    ),
    Comparison("`attention` : `nn.MultiheadAttention`", "attention", "MultiheadAttention"),
    Comparison(
        "`sparse_attention` window 64, mixing step : fused dense attention",
        "window",
        "fused attention",
        bars={2048: 3.0},
        kinds=("forward", "training"),
    ),
    Comparison(
        "`sparse_attention` window 64, layer : `attention`", "sparse_attention", "attention"
    ),
    Comparison(
        f"`hardmax_shift`, {FEW_HEADS} heads : its N x N form",
        "hardmax_shift, few heads",
        "hardmax_shift, N x N",
        bars={2048: 200.0},
        kinds=("forward",),
    ),
    Comparison("`lightconv`, layer : banded form", "lightconv", "lightconv, banded"),
    Comparison("`dynamicconv`, layer : unfolded form", "dynamicconv", "dynamicconv, unfolded"),
    Comparison("`fourier` : `fft2`", "fourier", "fft2"),
    Comparison(
        "`average`, product of its definition : matrix ceiling",
        "average",
        "matrix product",
        bars={ALL: 0.6},
        kinds=("forward", "training"),
        weight=matrix_share("average"),
    ),
    Comparison(
        "`bproj`, its two products : matrix ceiling",
        "bproj",
        "matrix product",
        bars={ALL: 0.6},
        kinds=("forward", "training"),
        weight=matrix_share("bproj"),
    ),
    Comparison("`average`, reading and writing x : copy", "average", "copy", weight=copy_share),
)


def settings(d_model: int) -> dict[str, str]:
    """The mixers that are timed, in compact notation; heads of size 64 as in BERT."""
    heads = d_model // D_HEAD
    return {
        "identity": "identity",
        "hardmax_shift": "hardmax_shift",
        "fourier": "fourier",
        "average": "average",
        "bproj": "bproj",
        "dynamicconv": f"dynamicconv(n_heads={N_FILTERS})",
        "lightconv": f"lightconv(n_heads={N_FILTERS})",
        "sepconv": f"sepconv(kernel_size={KERNEL_SIZE}, n_filters={N_FILTERS})",
        "sparse_attention": f"sparse_attention(n_heads={heads}, width={WINDOW})",
        "attention": f"attention(n_heads={heads})",
    }


class Bench:
    """Makes the calls of one shape on one device; weights and tokens from a fixed seed."""

    def __init__(self, shape: Shape, device: torch.device, *, compiled: bool = False) -> None:
        self.shape, self.device, self.compiled = shape, device, compiled
        self.dtype = getattr(torch, shape.dtype)
        self.x = self.tensor(shape.batch, shape.seq_len, shape.d_model)
        self.calls: dict[str, Call] = {}
        torch.manual_seed(0)

    def tensor(self, *sizes: int) -> Tensor:
        """A tensor of normal numbers."""
        return torch.randn(*sizes).to(self.device, self.dtype)

    def build(self, notation: str) -> Any:
        """A mixer of the shape."""
        (config,) = mixers.parse_architecture(notation)
        built = mixers.build(config, d_model=self.shape.d_model, max_seq_len=self.shape.seq_len)
        return built.to(self.device, self.dtype)

    def add(self, name: str, module: nn.Module, x: Tensor | None = None) -> None:
        """Times a module."""
        module = module.to(self.device, self.dtype)
        given = self.x if x is None else x
        self.calls[name] = pass_of(module, given, list(module.parameters()), self.shape.kind)

    def function(
        self, name: str, call: Callable[[Tensor], Tensor], x: Tensor, *more: Tensor
    ) -> None:
        """Times a function of tensors that all get a gradient."""
        rest = [tensor.requires_grad_(self.shape.kind == "training") for tensor in more]
        self.calls[name] = pass_of(call, x, rest, self.shape.kind)

    def ours(self) -> None:
        """Adds our mixers, and where asked each one compiled."""
        for name, notation in settings(self.shape.d_model).items():
            self.add(name, self.build(notation))
            if self.compiled:
                self.add(f"{name}, compiled", torch.compile(self.build(notation)))

    def peers(self) -> None:
        """Adds what they are held against."""
        d_model, heads = self.shape.d_model, self.shape.d_model // D_HEAD
        notations = settings(d_model)
        sepconv = self.build(notations["sepconv"])
        self.add("BERT attention", BertAttention(d_model, heads))
        self.add("MultiheadAttention", TorchAttention(d_model, heads))
        self.add("gate", sepconv.gate)
        self.add("out", sepconv.out)
        self.function("sepconv on conv1d", sepconv.reference, self.x, *sepconv.parameters())
        self.add("conv1d", DepthwiseConvolution(d_model, KERNEL_SIZE), self.x.mT.contiguous())
        self.attention_steps(heads)
        self.add("lightconv, banded", BandedLightConvolution(self.build(notations["lightconv"])))
        dynamic = self.build(notations["dynamicconv"])
        self.function("dynamicconv, unfolded", dynamic.reference, self.x, *dynamic.parameters())
        few = self.build(f"hardmax_shift(n_heads={FEW_HEADS})")
        self.add("hardmax_shift, few heads", few)
        if self.shape.kind == "forward":  # with gradients it would hold gigabytes
            self.add("hardmax_shift, N x N", SquareHardmaxShift(few))
        self.function("fft2", fourier_primitive, self.x.to(torch.float32))

    def attention_steps(self, heads: int) -> None:
        """Adds attention without projections, dense and in a window."""
        sizes = (self.shape.batch, heads, self.shape.seq_len, D_HEAD)
        query, key, value = (self.tensor(*sizes) for _ in range(3))

        def dense(query: Tensor) -> Tensor:
            return scaled_dot_product_attention(query, key, value)

        def window(query: Tensor) -> Tensor:
            return window_attention(query, key, value, None, before=WINDOW, after=WINDOW)

        self.function("fused attention", dense, query, key, value)
        if self.shape.seq_len > BLOCK + 2 * WINDOW:  # shorter input is dense under a mask
            self.function("window", window, query, key, value)

    def ceilings(self) -> None:
        """Adds a large matrix product and a large copy, forward whatever the pass."""
        left, right = self.tensor(SQUARE, SQUARE), self.tensor(SQUARE, SQUARE)
        source = self.tensor(COPIED)
        target = torch.empty_like(source)
        self.calls["matrix product"] = lambda: left @ right
        self.calls["copy"] = lambda: target.copy_(source)
