"""Checks that padding does not matter."""

from itertools import product

import torch
from torch import Tensor

from mixers.conformance.subject import Subject, causal_modes, differ, gap


def check_padding_content(subject: Subject) -> None:
    """What stands under the padding, NaN and inf included, changes no output and no gradient."""
    for causal in causal_modes(subject):
        compare_contents(subject, causal=causal)


def compare_contents(subject: Subject, *, causal: bool) -> None:
    """Run one batch with different numbers under its padding."""
    mixer = subject.build(causal=causal)
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
    for content in (1.0, -1e4, 1e30, float("nan"), float("inf")):
        got, grads = run(content)
        where = f"{content} under the padding, causal={causal}"
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
    sides = ["right", "left", "both"]
    if subject.mixer_type.traits(subject.config).fixed_length:
        sides = ["right"]
    n, x = subject.seq_len, subject.tokens(2)
    for causal in causal_modes(subject):
        mixer = subject.build(causal=causal, max_seq_len=4 * n)
        alone = mixer(x)
        for side, amount in product(sides, (1, 3, 3 * n)):
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
                    f"{n} tokens alone and with {amount} padded positions, side: {side}, "
                    f"causal={causal}",
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
