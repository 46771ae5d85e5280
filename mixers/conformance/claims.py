"""Checks of the traits and of the FLOP formula."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from mixers.base import TokenMixer
from mixers.conformance.subject import Subject, causal_modes, differ, gap, influence
from mixers.errors import MixerError

FREE_OPS = 64
"""Operations per number of the input that a formula may count and PyTorch's counter does not
(means, maxima, Fourier transforms)."""
FAR = 1024
"""Tokens of the input whose ends a global mixer must connect."""


def check_order(subject: Subject) -> None:
    """Permuting tokens permutes the output if, and only if, not position_aware."""
    traits = subject.mixer_type.traits(subject.config)
    aware, reach = traits.position_aware, traits.reach
    # A window that holds the whole input sees no order: the input must be longer.
    n = subject.seq_len if reach == "global" else window_length(subject, reach)
    mixer = subject.build(max_seq_len=n)
    x = subject.tokens(2, n)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(3))
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
    """Outputs move with the tokens they are connected to and with no others."""
    for causal in causal_modes(subject):
        mixer = subject.build(causal=causal)
        n = subject.seq_len if mixer.reach == "global" else window_length(subject, mixer.reach)
        check_connections(subject, n, causal=causal)
        if mixer.reach == "global":
            check_far(subject, causal=causal)


def window_length(subject: Subject, reach: int) -> int:
    """Return a length at which some tokens lie beyond the reach, as long as that is affordable."""
    return max(subject.seq_len, min(reach + 3, 160))


def check_connections(subject: Subject, n: int, *, causal: bool) -> None:
    """Replace every token in turn and compare what moves with `connections` and `reach`."""
    mixer = subject.build(max_seq_len=n, causal=causal)
    wanted = connections_of(subject, n, causal=causal)
    own = torch.eye(n, dtype=torch.bool)
    needed = torch.zeros_like(wanted)
    if is_overridden(subject):
        needed = wanted
    elif mixer.reach == "global":
        needed = wanted & ~own  # a token's own value is at hand without any mixing
    moved = torch.zeros_like(wanted)
    for seed in range(24 if needed.any() else 3):
        # A token outside every window of a selecting mixer follows no other token: try more inputs.
        moved |= influence(mixer, subject.tokens(1, n, seed=10 + seed))
        if bool((moved | ~needed).all()):
            break
    claim = f"reach={mixer.reach!r}" + (", causal" if causal else "")
    if is_overridden(subject):
        claim += ", connections() as declared"
    for wrong, verb in ((moved & ~wanted, "moves"), (needed & ~moved, "stays")):
        if wrong.any():
            output, token = wrong.nonzero()[0].tolist()
            raise subject.fail(claim, f"output {output} {verb}", f"token {token} of {n} replaced")
    check_width(subject, claim, mixer.reach, moved)


def check_width(
    subject: Subject, claim: str, reach: int | Literal["global"], moved: Tensor
) -> None:
    """No token beyond the reach, and some token as far away as it says."""
    if reach == "global":
        return
    places = torch.arange(len(moved))
    distance = (places[:, None] - places).abs()
    farthest = int(distance[moved].max()) if moved.any() else 0
    if farthest != min(reach, len(moved) - 1):
        raise subject.fail(
            claim,
            f"the farthest token that moves an output is {farthest} away",
            f"every one of {len(moved)} tokens replaced in turn",
        )


def check_far(subject: Subject, *, causal: bool) -> None:
    """A global mixer connects the ends of an input that is longer than any usual window."""
    mixer = subject.build(max_seq_len=FAR, causal=causal)
    ends = [0, FAR - 1]
    declared = connections_of(subject, FAR, causal=causal)
    spread = int((declared.nonzero() @ torch.tensor([1, -1])).abs().max()) if declared.any() else 0
    if spread < FAR // 2:
        raise subject.fail(
            "reach='global'", f"connections() declares at most {spread} apart", f"{FAR} tokens"
        )
    needed = declared[ends][:, ends].fill_diagonal_(False)
    moved = torch.zeros_like(needed)
    for seed in range(24):
        moved |= influence(mixer, subject.tokens(1, FAR, seed=10 + seed), tokens=ends)[ends]
        if bool((moved | ~needed).all()):
            return
    output, token = (needed & ~moved).nonzero()[0].tolist()
    raise subject.fail(
        "reach='global'",
        f"output {ends[output]} stays",
        f"token {ends[token]} of {FAR} replaced",
    )


def connections_of(subject: Subject, n: int, *, causal: bool) -> Tensor:
    """Return which tokens each output may see, (n, n) bool, as the mixer declares it."""
    config = subject.config.resolve(d_model=subject.d_model, max_seq_len=n)
    return subject.mixer_type.declared_connections(config, seq_len=n, causal=causal)


def is_overridden(subject: Subject) -> bool:
    """Whether the mixer declares its connections itself."""
    inherited = TokenMixer.connections.__func__  # type: ignore[attr-defined]
    own: Any = subject.mixer_type.connections
    return own.__func__ is not inherited


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
    """`flops` is at least what PyTorch counts in `reference`, and close to it, wide and long."""
    for d_model, seq_len in ((16 * subject.d_model, 4 * subject.seq_len), (subject.d_model, FAR)):
        counted = counted_flops(subject, d_model, seq_len)
        config = subject.config.resolve(d_model=d_model, max_seq_len=seq_len)
        declared = subject.mixer_type.flops(config, d_model=d_model, seq_len=seq_len)
        where = f"d_model {d_model}, seq_len {seq_len}"
        if not isinstance(declared, int):
            raise subject.fail(
                f"flops() = {declared} is a whole number", type(declared).__name__, where
            )
        if not counted <= declared <= 1.05 * counted + FREE_OPS * seq_len * d_model:
            raise subject.fail(f"flops() = {declared}", f"{counted} counted", where)


def check_cost(subject: Subject) -> None:
    """`flops` grows with the number of tokens as `cost` says, and so does what is counted."""
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
    if cost == "n^2":
        return
    reach = subject.mixer_type.traits(subject.config).reach
    n = 64 if reach == "global" else max(64, 8 * reach)  # a window is cut short at both ends
    once, twice = (counted_flops(subject, subject.d_model, length) for length in (n, 2 * n))
    # What twice the length costs beyond twice as much: linear work leaves nothing.
    if twice - 2 * once > 0.05 * twice:
        raise subject.fail(
            f"cost={cost!r}",
            f"PyTorch counts {twice / once:.3g} times as many FLOPs",
            f"{2 * n} tokens against {n}",
        )


def counted_flops(subject: Subject, d_model: int, seq_len: int) -> int:
    """Return what PyTorch counts in one forward of `reference`, without any data."""
    with torch.device("meta"):
        mixer = subject.mixer_type(subject.config, d_model=d_model, max_seq_len=seq_len)
        x = torch.empty(1, seq_len, d_model)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            mixer.eval().reference(x)
    return int(counter.get_total_flops())


def check_gradient_reach(subject: Subject) -> None:
    """No output has a gradient to a token that it does not see, however small."""
    for causal in causal_modes(subject):
        mixer = subject.build(causal=causal)
        x = subject.tokens(1).requires_grad_()
        out = mixer(x)
        if not out.requires_grad:
            return
        seen = connections_of(subject, subject.seq_len, causal=causal)
        weight = subject.tokens(1, seed=2)[0]
        for output, row in enumerate(seen):
            loss = (out[0, output] * weight[output]).sum()
            (grad,) = torch.autograd.grad(loss, x, retain_graph=True, materialize_grads=True)
            leaks = ((grad[0] != 0).any(-1) & ~row).nonzero()
            if len(leaks):
                token = int(leaks[0])
                raise subject.fail(
                    f"reach={mixer.reach!r}, in the gradient" + (", causal" if causal else ""),
                    f"output {output} has a gradient of {float(grad[0, token].abs().max()):.3g}",
                    f"to token {token} of {subject.seq_len}",
                )
