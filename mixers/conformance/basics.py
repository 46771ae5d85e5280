"""Checks of form: shapes, repeats, gradients, state, config, the reference route, batches."""

import copy
import pickle
import warnings
from collections.abc import Callable

import torch

from mixers.conformance.subject import Subject, causal_modes, differ, gap


def check_shape(subject: Subject) -> None:
    """(B, N, D) in, (B, N, D) out, in the input's number format, finite, x and mask left alone."""
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
        mask = torch.ones(3, subject.seq_len, dtype=torch.bool)
        mask[1, 2:], mask[2] = False, False
        given = mask.clone()
        out = mixer(subject.tokens(3).to(dtype), mask)
        if not torch.equal(mask, given):
            raise subject.fail("the mask is not written to", "it was changed", f"{dtype}")
        if out.dtype != dtype or not torch.isfinite(out).all():
            raise subject.fail(
                "under a mask the output is finite and in the format of the input",
                f"{out.dtype}, finite: {bool(torch.isfinite(out).all())}",
                f"{dtype}, rows of {subject.seq_len}, 2 and 0 real tokens",
            )


def check_sizes(subject: Subject) -> None:
    """Batches of 1 to 4, all short lengths and those around 16, 32, 64 and 128 work."""
    mixer = subject.build(max_seq_len=subject.seq_len)
    for batch in range(1, 5):
        for seq_len in range(1, subject.seq_len + 1):
            x = subject.tokens(batch, seq_len)
            for mask in (None, torch.ones(batch, seq_len, dtype=torch.bool)):
                out = mixer(x, mask)
                if out.shape != x.shape or not torch.isfinite(out).all():
                    raise subject.fail(
                        "any batch and length give finite output of the input's shape",
                        f"{tuple(out.shape)}, finite: {bool(torch.isfinite(out).all())}",
                        f"input {tuple(x.shape)}, {'no mask' if mask is None else 'all real'}",
                    )

    for power in (16, 32, 64, 128):  # where what runs in blocks begins another
        for seq_len in (power - 1, power, power + 1):
            x = subject.tokens(1, seq_len)
            out = subject.build(max_seq_len=seq_len)(x)
            if out.shape != x.shape or not torch.isfinite(out).all():
                raise subject.fail(
                    "any length gives finite output of the input's shape",
                    f"{tuple(out.shape)}, finite: {bool(torch.isfinite(out).all())}",
                    f"input {tuple(x.shape)}",
                )


def check_repeat(subject: Subject) -> None:
    """The same seed gives the same mixer, the same mixer the same output, bit by bit."""
    x = subject.tokens(2)
    first, second = subject.build(), subject.build()
    if not torch.equal(first(x), second(x)) or not torch.equal(first(x), first(x)):
        raise subject.fail("same seed, same output", "outputs differ", "two builds with seed 0")


def check_gradients(subject: Subject) -> None:
    """Gradients are finite, of zeros too, and every parameter gets one."""
    for x, where in (
        (subject.tokens(8), "random input"),
        (torch.zeros_like(subject.tokens(2)), "input of zeros"),
    ):
        mixer = subject.build()
        out = mixer(x.requires_grad_())
        if not out.requires_grad:
            if any(True for _ in mixer.parameters()):
                raise subject.fail("every parameter gets gradient", "output has none", where)
            return
        (out * subject.tokens(len(x), seed=2)).sum().backward()
        for name, tensor in [("x", x), *mixer.named_parameters()]:
            if tensor.grad is not None and not torch.isfinite(tensor.grad).all():
                raise subject.fail("gradients are finite", f"that of {name} is not", where)
        for name, parameter in mixer.named_parameters():
            has_some = parameter.grad is not None and bool(parameter.grad.abs().max() > 0)
            if not has_some and where == "random input":
                raise subject.fail(
                    "every parameter gets gradient", f"{name} gets none or only zeros", where
                )


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
    """The state dict carries everything: loaded elsewhere, after a run, it gives the same bits."""
    source, target = subject.build(seed=0), subject.build(seed=5)
    x = subject.tokens(2)
    with torch.no_grad():
        target(x)  # what it may keep of its old weights must not outlive them
        target.load_state_dict(source.state_dict())
        is_same = torch.equal(source(x), target(x))
    if not is_same:
        raise subject.fail(
            "the state dict holds all state", "outputs differ", "state of seed 0 into seed 5"
        )


def check_copy(subject: Subject) -> None:
    """A deep copy computes the same; neither it nor a second mixer shares a parameter."""
    mixer = subject.build()
    x = subject.tokens(2)
    before = mixer(x)
    twin, second = copy.deepcopy(mixer), subject.build(seed=5)
    if not torch.equal(mixer(x), before):
        raise subject.fail(
            "two mixers share nothing", "the first one's output changed", "a second one was built"
        )
    if not torch.equal(twin(x), before):
        raise subject.fail("a deep copy computes the same", "outputs differ", "copy.deepcopy")
    for other, name in ((twin, "a deep copy"), (second, "a second mixer")):
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.add_(1.0)
        if not torch.equal(mixer(x), before):
            raise subject.fail(
                f"{name} shares nothing",
                "the original's output changed",
                f"1 added to every parameter of {name}",
            )


def check_pickle(subject: Subject) -> None:
    """The config survives pickling, as it must on its way to another process."""
    try:
        back = pickle.loads(pickle.dumps(subject.config))
    except Exception as error:
        raise subject.fail(
            "the config can be pickled",
            f"{type(error).__name__}: {error}",
            "define config classes at module level",
        ) from error
    if back != subject.config:
        raise subject.fail("the config round-trips through pickle", repr(back), subject.label)


def check_compiled(subject: Subject) -> None:
    """`torch.compile` changes neither outputs nor gradients."""
    mixer = subject.build()
    mask = torch.ones(2, subject.seq_len, dtype=torch.bool)
    mask[1, -3:] = False
    weight = subject.tokens(2, seed=2) * mask[..., None]

    def run(module: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        x = subject.tokens(2).requires_grad_()
        out = module(x, mask)
        inputs = [x, *mixer.parameters()]
        if not out.requires_grad:
            return [out * mask[..., None]]
        loss = (out * weight).sum()
        return [out * mask[..., None], *torch.autograd.grad(loss, inputs, materialize_grads=True)]

    wanted = run(mixer)
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own
        compiled = torch.compile(mixer, backend="aot_eager", dynamic=False)
        got = run(compiled)
    torch.compiler.reset()
    names = ["the output", "the gradient of x"]
    names += [f"the gradient of {name}" for name, _ in mixer.named_parameters()]
    for name, left, right in zip(names, wanted, got, strict=False):
        if differ(left[None, None].flatten(2), right[None, None].flatten(2)).any():
            raise subject.fail(
                f"compiled, {name} is the same", gap(left, right), "backend aot_eager"
            )


def check_config(subject: Subject) -> None:
    """The config survives JSON."""
    text = subject.config.model_dump_json()
    back = type(subject.config).model_validate_json(text)
    if back != subject.config:
        raise subject.fail("the config round-trips through JSON", repr(back), text)
