"""Checks of what a mixer may not lean on: its mode, memory layout, random state and device."""

import re
from collections.abc import Callable, Iterator
from itertools import chain

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call

from mixers.conformance.subject import Subject, causal_modes, differ, gap

DEVICE_CLAIM = "new tensors are made on the input's device"
ELSEWHERE = torch.device("lazy", 0)
"""A type of device that every build of PyTorch can name, with a GPU or without."""
TWO_DEVICES = re.compile(r"two( different)? devices")
"""What PyTorch says of an operation on tensors of several devices."""


def check_training(subject: Subject) -> None:
    """In training no output moves with what it does not move with otherwise."""
    for causal in causal_modes(subject):
        mixer = subject.build(causal=causal)
        mask = torch.ones(3, subject.seq_len, dtype=torch.bool)
        mask[1, -3:], mask[2, :2] = False, False
        for what, x in changed_inputs(subject, mask):
            usual, trained = (
                moved(seeded(mixer, training=mode), subject.tokens(3), x, mask)
                for mode in (False, True)
            )
            fresh = (trained & ~usual).nonzero()
            if len(fresh):
                row, output = fresh[0].tolist()
                raise subject.fail(
                    "training lets no output see more",
                    f"output {output} of row {row} moves in training only",
                    f"{what}, causal={causal}",
                )


def changed_inputs(subject: Subject, mask: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield (what was changed, input): the padding, then one token of the first row at a time."""
    x, other = subject.tokens(3), subject.tokens(3, seed=2)
    yield "other content under the padding", x.masked_fill(~mask[..., None], 7.0)
    for token in range(subject.seq_len):
        variant = x.clone()
        variant[0, token] = 4.0 * other[0, token]
        yield f"token {token} of row 0 replaced", variant


def seeded(mixer: nn.Module, *, training: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a mixer's forward in a mode, with the same random numbers at every call."""

    def run(x: Tensor, mask: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            out: Tensor = mixer.train(training)(x.clone(), mask.clone())
        return out

    return run


def moved(run: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Return which outputs at real tokens differ between two inputs, (B, N) bool."""
    return differ(run(x, mask), run(y, mask)) & mask


def check_layout(subject: Subject) -> None:
    """Input and mask that are not contiguous in memory give what they give otherwise."""
    mixer = subject.build()
    x = subject.tokens(2)
    mask = (torch.arange(subject.seq_len) < subject.seq_len - 2).expand(2, -1)
    wanted = mixer(x, mask.contiguous())
    transposed = x.mT.contiguous().mT
    for strided, where in ((transposed, "features first"), (batch_last(x), "batch last")):
        got = mixer(strided, mask)
        if differ(wanted, got)[mask].any():
            raise subject.fail(
                "the memory layout does not matter", gap(wanted, got), f"{where} in memory"
            )


def batch_last(x: Tensor) -> Tensor:
    """Return equal numbers that lie in memory with the batch as the last dimension."""
    return x.permute(1, 2, 0).contiguous().permute(2, 0, 1)


def check_random_state(subject: Subject) -> None:
    """Building draws from torch's generator and never seeds it; running in eval mode leaves it."""
    with torch.random.fork_rng(devices=[]):
        drawn = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            mixer = subject.mixer_type(
                subject.config, d_model=subject.d_model, max_seq_len=subject.longest
            )
            drawn.append(torch.rand(4))
        if torch.equal(*drawn):
            raise subject.fail(
                "building seeds no generator",
                "the same random numbers follow",
                "built after seed 1 and after seed 2",
            )
        before = torch.get_rng_state()
        mixer.double().eval()(subject.tokens(2))
        if not torch.equal(before, torch.get_rng_state()):
            raise subject.fail(
                "in eval mode nothing is drawn", "torch's generator has moved on", "one forward"
            )


def check_placement(subject: Subject) -> None:
    """New tensors are made where the input is; what is kept is a parameter or a buffer."""
    mixer = subject.build()
    for name, module in mixer.named_modules():
        kept = [key for key, value in vars(module).items() if isinstance(value, Tensor)]
        if kept:
            raise subject.fail(
                "what is kept moves with the module",
                f"tensor {'.'.join(filter(None, (name, kept[0])))} is no parameter and no buffer",
                "it stays behind when the module goes to another device; use register_buffer",
            )
    check_default_device(subject, mixer)
    check_elsewhere(subject, mixer)


def check_default_device(subject: Subject, mixer: nn.Module) -> None:
    """What is computed stays on the input's device where torch's default is another."""
    x = subject.tokens(2)
    mask = torch.ones(2, subject.seq_len, dtype=torch.bool)
    where = "the default device is another than the input's"
    try:
        with torch.device("meta"):
            out = mixer(x, mask)
    except Exception as error:
        raise subject.fail(DEVICE_CLAIM, f"{type(error).__name__}: {error}", where) from error
    if out.device != x.device:
        raise subject.fail(DEVICE_CLAIM, f"the output is on {out.device}", where)


def check_elsewhere(subject: Subject, mixer: nn.Module) -> None:
    """Nothing of another device gets in where mixer and input are on one that is not the CPU.

    Fake tensors follow devices that no machine has, but know no values: a mixer that asks for one
    (`if mask.all()`) is not judged from there on.
    """
    kept = dict(chain(mixer.named_parameters(), mixer.named_buffers()))
    mask = torch.ones(2, subject.seq_len, dtype=torch.bool)
    for inputs in ((subject.tokens(2),), (subject.tokens(2), mask)):
        moved_along = "input and mask" if len(inputs) > 1 else "input"
        where = f"mixer and {moved_along} on a made-up device, {ELSEWHERE}"
        with FakeTensorMode() as mode:
            try:
                there = {
                    name: mode.from_tensor(tensor).to(ELSEWHERE) for name, tensor in kept.items()
                }
                out = functional_call(
                    mixer, there, tuple(mode.from_tensor(tensor).to(ELSEWHERE) for tensor in inputs)
                )
            except Exception as error:
                if TWO_DEVICES.search(str(error)):
                    raise subject.fail(DEVICE_CLAIM, str(error), where) from error
                continue
        if out.device != ELSEWHERE:
            raise subject.fail(DEVICE_CLAIM, f"the output is on {out.device}", where)
