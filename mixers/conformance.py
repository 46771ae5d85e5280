"""The measurements behind `mixers.testing`: one function per claim, `CHECKS` lists them.

All measure in float64 with parameters moved away from their initial values: a bias that starts at
zero, or an output that does, would hide faults.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from mixers.base import TokenMixer
from mixers.config import MixerConfig
from mixers.errors import ConformanceError, MixerError

TOLERANCE = 1e-8
"""Relative to the size of the output: far above float64 rounding, far below any real influence."""
FREE_OPS = 64
"""Operations per number of the input that a formula may count and PyTorch's counter does not
(means, maxima, Fourier transforms)."""

FAR = 1024
"""Tokens of the input whose ends a global mixer must connect."""


@dataclass(frozen=True)
class Subject:
    """One config of one mixer class, at the sizes of the measurement."""

    mixer_type: type[TokenMixer[Any]]
    config: MixerConfig
    d_model: int
    seq_len: int

    @property
    def kind(self) -> str:
        """The mixer's kind."""
        return self.config.kind

    @property
    def label(self) -> str:
        """Kind and the fields that differ from their defaults."""
        changed = self.config.model_dump(exclude_defaults=True, exclude={"kind"})
        return ",".join([self.kind, *(f"{name}={value}" for name, value in changed.items())])

    def build(
        self, *, causal: bool = False, seed: int = 0, max_seq_len: int | None = None
    ) -> TokenMixer[Any]:
        """Return the mixer in float64 and eval mode, its parameters moved at random."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            mixer = self.mixer_type(
                self.config,
                d_model=self.d_model,
                max_seq_len=max_seq_len or 2 * self.seq_len,
                causal=causal,
            )
            mixer = mixer.double().eval()
            with torch.no_grad():
                for parameter in mixer.parameters():
                    parameter.add_(0.2 * torch.randn_like(parameter))
        return mixer

    def tokens(self, batch: int, seq_len: int | None = None, seed: int = 1) -> Tensor:
        """Return random input (batch, seq_len, d_model)."""
        generator = torch.Generator().manual_seed(seed)
        shape = (batch, seq_len or self.seq_len, self.d_model)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def fail(self, claim: str, measured: str, counterexample: str) -> ConformanceError:
        """Return the error to raise."""
        return ConformanceError(self.label, claim, measured, counterexample)


CheckFunction = Callable[[Subject], None]


def differ(left: Tensor, right: Tensor) -> Tensor:
    """Return where two outputs differ beyond rounding, per token (B, N) bool; NaN differs."""
    scale = 1.0 + left.detach().nan_to_num().abs().max()
    return ~((left - right).abs().amax(-1) <= TOLERANCE * scale)


def gap(left: Tensor, right: Tensor) -> str:
    """Return the largest difference in words."""
    return f"largest difference {float((left - right).detach().abs().max()):.3g}"


def check_shape(subject: Subject) -> None:
    """(B, N, D) in, (B, N, D) out, in the number format of the input, the input left alone."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        mixer = subject.build().to(dtype)
        for batch, seq_len in ((2, subject.seq_len), (1, 1), (3, 2)):
            x = subject.tokens(batch, seq_len).to(dtype)
            before = x.clone()
            out = mixer(x)
            where = f"input {tuple(x.shape)} {dtype}"
            if out.shape != x.shape or out.dtype != dtype:
                raise subject.fail(
                    "output has the shape and format of the input",
                    f"{tuple(out.shape)} {out.dtype}",
                    where,
                )
            if not torch.isfinite(out).all():
                raise subject.fail("output is finite", "NaN or inf", where)
            if not torch.equal(x, before):
                raise subject.fail("the input is not written to", "it was changed", where)


def check_repeat(subject: Subject) -> None:
    """The same seed gives the same mixer, the same mixer the same output, bit by bit."""
    x = subject.tokens(2)
    first, second = subject.build(), subject.build()
    if not torch.equal(first(x), second(x)) or not torch.equal(first(x), first(x)):
        raise subject.fail("same seed, same output", "outputs differ", "two builds with seed 0")


def check_gradients(subject: Subject) -> None:
    """Gradients are finite and every parameter gets one."""
    mixer = subject.build()
    x = subject.tokens(8).requires_grad_()
    out = mixer(x)
    if not out.requires_grad:
        if any(True for _ in mixer.parameters()):
            raise subject.fail("every parameter gets gradient", "output has none", "random input")
        return
    (out * subject.tokens(8, seed=2)).sum().backward()
    for name, parameter in mixer.named_parameters():
        if parameter.grad is None or not parameter.grad.abs().max() > 0:
            raise subject.fail(
                "every parameter gets gradient", f"{name} gets none or only zeros", "random input"
            )
    for name, tensor in [("x", x), *mixer.named_parameters()]:
        if tensor.grad is not None and not torch.isfinite(tensor.grad).all():
            raise subject.fail("gradients are finite", f"that of {name} is not", "random input")


def check_padding_content(subject: Subject) -> None:
    """What stands under the padding, NaN and inf included, changes no output and no gradient."""
    mixer = subject.build()
    n = subject.seq_len
    mask = torch.ones(4, n, dtype=torch.bool)
    mask[0, n - 3 :] = False
    mask[1, :2] = False
    mask[2, n // 2] = False
    weight = subject.tokens(4, seed=2) * mask[..., None]

    def run(content: float) -> tuple[Tensor, list[Tensor]]:
        x = subject.tokens(4).masked_fill(~mask[..., None], content).requires_grad_()
        out = mixer(x, mask)
        real = torch.where(mask[..., None], out, 0.0)
        inputs = [x, *mixer.parameters()]
        if not out.requires_grad:
            return real, [torch.zeros_like(tensor) for tensor in inputs]
        loss = (real * weight).sum()
        return real, list(torch.autograd.grad(loss, inputs, materialize_grads=True))

    wanted, wanted_grads = run(0.0)
    for content in (1.0, -1e4, float("nan"), float("inf")):
        got, grads = run(content)
        where = f"{content} under the padding"
        if differ(wanted, got).any():
            row = int(differ(wanted, got).any(1).nonzero()[0])
            raise subject.fail(
                "padding content does not matter",
                gap(wanted, got),
                f"{where}, mask {mask[row].int().tolist()}",
            )
        names = ["x", *(name for name, _ in mixer.named_parameters())]
        for name, left, right in zip(names, wanted_grads, grads, strict=True):
            if differ(left[None, None].flatten(2), right[None, None].flatten(2)).any():
                raise subject.fail(
                    "padding content does not matter", f"gradient of {name} changes", where
                )


def check_padding_amount(subject: Subject) -> None:
    """How much padding follows changes nothing; nor, unless fixed_length, how much precedes."""
    traits = subject.mixer_type.traits(subject.config)
    mixer = subject.build(max_seq_len=4 * subject.seq_len)
    n = subject.seq_len
    x = subject.tokens(2)
    alone = mixer(x)
    sides = ["right"] if traits.fixed_length else ["right", "left", "both"]
    for side in sides:
        for amount in (1, 3, 3 * n):
            before = {"right": 0, "left": amount, "both": amount // 2}[side]
            padded = torch.full((2, n + amount, subject.d_model), 7.0, dtype=x.dtype)
            mask = torch.zeros(2, n + amount, dtype=torch.bool)
            padded[:, before : before + n] = x
            mask[:, before : before + n] = True
            got = mixer(padded, mask)[:, before : before + n]
            if differ(alone, got).any():
                raise subject.fail(
                    "the amount of padding does not matter",
                    gap(alone, got),
                    f"{n} tokens alone and with {amount} padded positions, side: {side}",
                )


def check_empty_row(subject: Subject) -> None:
    """A row without a real token is finite, in the gradients too, and harms no other row."""
    for causal in causal_modes(subject):
        mixer = subject.build(causal=causal)
        mask = torch.ones(2, subject.seq_len, dtype=torch.bool)
        mask[1] = False
        x = subject.tokens(2).requires_grad_()
        out = mixer(x, mask)
        alone = mixer(x[:1].detach())
        where = f"two rows, the second all padding, causal={causal}"
        if not torch.isfinite(out).all():
            raise subject.fail("a row without real tokens is finite", "NaN or inf", where)
        if differ(alone, out[:1]).any():
            raise subject.fail("rows do not see each other", gap(alone, out[:1]), where)
        if not out.requires_grad:
            continue
        grads = torch.autograd.grad(
            out.square().sum(), [x, *mixer.parameters()], materialize_grads=True
        )
        if not all(torch.isfinite(grad).all() for grad in grads):
            raise subject.fail("a row without real tokens has finite gradients", "NaN", where)


def check_batch(subject: Subject) -> None:
    """A row alone gives what it gives among others."""
    mixer = subject.build()
    x = subject.tokens(3)
    mask = torch.ones(3, subject.seq_len, dtype=torch.bool)
    mask[1, -4:] = False
    together = mixer(x, mask)
    for row in range(3):
        alone = mixer(x[row : row + 1], mask[row : row + 1])
        real = mask[row : row + 1, :, None]
        if differ(together[row : row + 1] * real, alone * real).any():
            raise subject.fail(
                "a row does not depend on the others",
                gap(together[row : row + 1] * real, alone * real),
                f"row {row} of 3, alone and in the batch",
            )
    if differ(mixer(x), mixer(x, torch.ones_like(mask))).any():
        raise subject.fail(
            "no mask means all tokens are real", "outputs differ", "mask=None and all True"
        )


def check_order(subject: Subject) -> None:
    """Permuting tokens permutes the output if, and only if, not position_aware."""
    aware = subject.mixer_type.traits(subject.config).position_aware
    mixer = subject.build()
    x = subject.tokens(2)
    order = torch.randperm(subject.seq_len, generator=torch.Generator().manual_seed(3))
    wanted, got = mixer(x)[:, order], mixer(x[:, order])
    moved = bool(differ(wanted, got).any())
    if moved and not aware:
        raise subject.fail(
            "position_aware=False", gap(wanted, got), f"tokens in the order {order.tolist()}"
        )
    if aware and not moved:
        raise subject.fail(
            "position_aware=True",
            "permuting the tokens only permutes the output",
            f"tokens in the order {order.tolist()}",
        )


def check_causal(subject: Subject) -> None:
    """With causal=True no output looks ahead; a mixer that does not claim it refuses."""
    if not subject.mixer_type.traits(subject.config).causal:
        try:
            subject.build(causal=True)
        except MixerError:
            return
        raise subject.fail(
            "causal=False: building with causal=True is refused",
            "it was built",
            "call TokenMixer.__init__ with causal",
        )
    mixer = subject.build(causal=True)
    n = subject.seq_len
    padded = torch.ones(1, n, dtype=torch.bool)
    padded[:, :2] = False
    for mask in (None, padded):
        moved = influence(mixer, subject.tokens(1), mask)
        ahead = (moved & ~torch.ones(n, n, dtype=torch.bool).tril()).nonzero()
        if len(ahead):
            output, token = ahead[0].tolist()
            raise subject.fail(
                "causal=True: no output looks ahead",
                f"output {output} moves",
                f"token {token} replaced" + ("" if mask is None else ", first two padded"),
            )


def check_reach(subject: Subject) -> None:
    """Outputs move with tokens within reach and with no others."""
    reach = subject.mixer_type.traits(subject.config).reach
    n = subject.seq_len if reach == "global" else max(subject.seq_len, min(reach + 3, 160))
    mixer = subject.build(max_seq_len=n)
    moved = torch.zeros(n, n, dtype=torch.bool)
    for seed in range(24 if reach == "global" else 3):
        # A token outside every window of a selecting mixer follows no other token: try more inputs.
        moved |= influence(mixer, subject.tokens(1, n, seed=10 + seed))
        if moved.all():
            break
    places = torch.arange(n)
    distance = (places[:, None] - places[None, :]).abs()
    if reach == "global":
        if not moved.all():
            output, token = (~moved).nonzero()[0].tolist()
            raise subject.fail(
                "reach='global'", f"output {output} stays", f"token {token} of {n} replaced"
            )
        check_far(subject)
        return
    beyond = (moved & (distance > reach)).nonzero()
    if len(beyond):
        output, token = beyond[0].tolist()
        raise subject.fail(f"reach={reach}", f"output {output} moves", f"token {token} replaced")
    farthest = int(distance[moved].max()) if moved.any() else 0
    if farthest < min(reach, n - 1):
        raise subject.fail(
            f"reach={reach}",
            f"no output moves with a token more than {farthest} away",
            f"every one of {n} tokens replaced in turn",
        )


def check_far(subject: Subject) -> None:
    """A global mixer connects the two ends of an input that is longer than any usual window."""
    mixer = subject.build(max_seq_len=FAR)
    ends = [0, FAR - 1]
    moved = torch.zeros(FAR, 2, dtype=torch.bool)
    for seed in range(24):
        moved |= influence(mixer, subject.tokens(1, FAR, seed=10 + seed), tokens=ends)
        if moved[ends].all():
            return
    output, token = (~moved[ends]).nonzero()[0].tolist()
    raise subject.fail(
        "reach='global'",
        f"output {ends[output]} stays",
        f"token {ends[token]} of {FAR} replaced",
    )


def check_linear(subject: Subject) -> None:
    """f(x) - f(0) is linear in x if, and only if, claimed."""
    claimed = subject.mixer_type.traits(subject.config).linear
    mixer = subject.build()
    x, y = subject.tokens(2), subject.tokens(2, seed=2)
    zero = mixer(torch.zeros_like(x))
    wanted = 2.0 * (mixer(x) - zero) - 3.0 * (mixer(y) - zero)
    got = mixer(2.0 * x - 3.0 * y) - zero
    if claimed == bool(differ(wanted, got).any()):
        raise subject.fail(
            f"linear={claimed}", gap(wanted, got), "f(2x - 3y) - f(0) against its parts"
        )


def check_length(subject: Subject) -> None:
    """Input longer than max_seq_len works, or, with fixed_length, is refused with both lengths."""
    fixed = subject.mixer_type.traits(subject.config).fixed_length
    limit = subject.seq_len
    mixer = subject.build(max_seq_len=limit)
    x = subject.tokens(1, limit + 1)
    try:
        out = mixer(x)
    except MixerError as error:
        text = str(error)
        if not fixed:
            raise subject.fail("fixed_length=False", text, f"{limit + 1} tokens") from error
        if str(limit) not in text or str(limit + 1) not in text:
            raise subject.fail(
                "too long input is refused with both lengths", text, f"{limit + 1} tokens"
            ) from error
        return
    except Exception as error:
        raise subject.fail(
            f"fixed_length={fixed}: too long input works or is a MixerError",
            f"{type(error).__name__}: {error}",
            f"{limit + 1} tokens where max_seq_len is {limit}",
        ) from error
    if fixed or out.shape != x.shape:
        raise subject.fail(
            f"fixed_length={fixed}", f"output {tuple(out.shape)}", f"{limit + 1} tokens"
        )


def check_flops(subject: Subject) -> None:
    """`flops` is at least what PyTorch counts in `reference`, and close to it."""
    d_model, seq_len = 16 * subject.d_model, 4 * subject.seq_len
    with torch.device("meta"):
        mixer = subject.mixer_type(subject.config, d_model=d_model, max_seq_len=seq_len)
        x = torch.empty(1, seq_len, d_model)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            mixer.eval().reference(x)
    counted = counter.get_total_flops()
    declared = subject.mixer_type.flops(mixer.config, d_model=d_model, seq_len=seq_len)
    if not counted <= declared <= 1.05 * counted + FREE_OPS * x.numel():
        raise subject.fail(
            f"flops() = {declared}", f"{counted} counted", f"d_model {d_model}, seq_len {seq_len}"
        )


def check_cost(subject: Subject) -> None:
    """`flops` grows with the number of tokens as `cost` says."""
    cost = subject.mixer_type.traits(subject.config).cost
    config = subject.config.resolve(d_model=subject.d_model, max_seq_len=subject.seq_len)
    small, large = (
        subject.mixer_type.flops(config, d_model=subject.d_model, seq_len=n) for n in (2**20, 2**21)
    )
    growth = large / small if small else 2.0
    low, high = {"n": (1.98, 2.02), "n log n": (2.02, 2.4), "n^2": (3.9, 4.1)}[cost]
    if not low <= growth <= high:
        raise subject.fail(
            f"cost={cost!r}", f"flops() grows {growth:.3g} times", "twice as many tokens"
        )


def check_reference(subject: Subject) -> None:
    """`forward` equals `reference`, short and long, padded and causal."""
    for causal in causal_modes(subject):
        for n in (1, subject.seq_len, 200):
            mixer = subject.build(causal=causal, max_seq_len=n)
            x = subject.tokens(2, n)
            mask = torch.ones(2, n, dtype=torch.bool)
            mask[1, n - n // 3 :] = False
            wanted, got = mixer.reference(x, mask), mixer(x, mask)
            if differ(wanted, got)[mask].any():
                raise subject.fail(
                    "forward equals reference", gap(wanted, got), f"{n} tokens, causal={causal}"
                )


def check_state(subject: Subject) -> None:
    """The state dict carries everything: loaded elsewhere it gives the same bits."""
    source, target = subject.build(seed=0), subject.build(seed=5)
    target.load_state_dict(source.state_dict())
    x = subject.tokens(2)
    if not torch.equal(source(x), target(x)):
        raise subject.fail(
            "the state dict holds all state", "outputs differ", "state of seed 0 into seed 5"
        )


def check_config(subject: Subject) -> None:
    """The config survives JSON."""
    text = subject.config.model_dump_json()
    back = type(subject.config).model_validate_json(text)
    if back != subject.config:
        raise subject.fail("the config round-trips through JSON", repr(back), text)


def causal_modes(subject: Subject) -> list[bool]:
    """Return the values of `causal` that the mixer can be built with."""
    return [False, True] if subject.mixer_type.traits(subject.config).causal else [False]


def influence(
    mixer: nn.Module,
    x: Tensor,
    mask: Tensor | None = None,
    *,
    tokens: Sequence[int] | None = None,
) -> Tensor:
    """Return which outputs move with which tokens, (N, N) bool: entry (j, i) is output j, token i.

    Every token is replaced several times, by tokens of several sizes, since a mixer that selects
    ignores most of them.

    Args:
        mixer: The mixer, in eval mode.
        x: One input, (1, N, D).
        mask: (1, N) bool, True = real token; padded outputs count as not moving.
        tokens: The tokens to replace, one column each; by default all.
    """
    places = torch.arange(x.shape[1]) if tokens is None else torch.tensor(tokens)
    generator = torch.Generator().manual_seed(4)
    moved = torch.zeros(x.shape[1], len(places), dtype=torch.bool)
    with torch.no_grad():
        base = mixer(x, mask)
        many = None if mask is None else mask.expand(len(places), -1)
        for size in (1.0, 1.0, 4.0, 4.0, 16.0):
            variants = x.repeat(len(places), 1, 1)
            fresh = torch.randn(len(places), x.shape[2], generator=generator, dtype=torch.float64)
            variants[torch.arange(len(places)), places] = (size * fresh).to(x.dtype)
            moved |= differ(base.expand_as(variants), mixer(variants, many)).T
    if mask is not None:
        moved &= mask.T
    return moved


CHECKS: dict[str, CheckFunction] = {
    "shape_and_dtype": check_shape,
    "same_seed_same_output": check_repeat,
    "every_parameter_gets_gradient": check_gradients,
    "padding_content": check_padding_content,
    "padding_amount": check_padding_amount,
    "empty_row": check_empty_row,
    "batch_independence": check_batch,
    "position_aware": check_order,
    "causal": check_causal,
    "reach": check_reach,
    "linear": check_linear,
    "fixed_length": check_length,
    "flops": check_flops,
    "cost": check_cost,
    "reference": check_reference,
    "state_round_trip": check_state,
    "config_round_trip": check_config,
}
"""All measurements, by the names that `expected_failures` uses."""
