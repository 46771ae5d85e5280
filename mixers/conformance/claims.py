"""Checks of the traits and of the FLOP formula."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from mixers.conformance.subject import Subject, differ, gap, influence
from mixers.errors import MixerError

FREE_OPS = 64
"""Operations per number of the input that a formula may count and PyTorch's counter does not
(means, maxima, Fourier transforms)."""
FAR = 1024
"""Tokens of the input whose ends a global mixer must connect."""


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
