"""Checks of form: shapes, repeats, gradients, state, config, the reference route, batches."""

import torch

from mixers.conformance.subject import Subject, causal_modes, differ, gap


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
