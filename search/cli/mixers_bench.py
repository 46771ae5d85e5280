"""`search mixers bench`: what a swap of attention for another mixer brings at your shapes."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.cli.options import JsonOption
from search.cli.output import LEFT, RIGHT, note, print_json, table, write

if TYPE_CHECKING:
    import torch

    from search.timing.swap import Swap


def bench_mixers(
    mixers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MIXER]...",
            help="Names or notation such as 'sepconv(kernel_size=128)'; all built in if left out.",
        ),
    ] = None,
    d_model: Annotated[
        int, typer.Option("--d-model", min=1, metavar="D", help="Features per token.")
    ] = 256,
    seq_len: Annotated[
        int, typer.Option("--seq-len", min=1, metavar="N", help="Tokens per sequence.")
    ] = 512,
    batch: Annotated[int, typer.Option("--batch", min=1, metavar="B", help="Sequences.")] = 1,
    against: Annotated[
        str, typer.Option("--against", metavar="MIXER", help="What they are held against.")
    ] = "attention",
    dtype: Annotated[
        Literal["float32", "bfloat16"], typer.Option("--dtype", help="Of weights and tokens.")
    ] = "float32",
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option("--device", help="Where to measure.")
    ] = "auto",
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, metavar="T", help="Of the CPU; torch's own by default."),
    ] = None,
    clock: Annotated[
        Literal["wall", "processor"],
        typer.Option(
            "--clock", help="On a CPU: processor time with --threads 1 suits a busy machine."
        ),
    ] = "wall",
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, metavar="R", help="Rounds per length.")
    ] = 5,
    json: JsonOption = False,
) -> None:
    """Time whole blocks with other mixers against attention, at your shapes.

    Attention is the fused primitive. Every round times every block once; ratios are medians over
    the rounds, above 1 the mixer is faster. Measured at N and at each power of two from 64 below
    it, for "pays from".
    """
    import torch

    from search.errors import InputError
    from search.timing.swap import lengths_up_to, measure_swaps

    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: there is no CUDA device here; leave it out")
    if threads is not None:
        torch.set_num_threads(threads)
    swaps = measure_swaps(
        mixers or default_mixers(against),
        d_model=d_model,
        seq_lens=lengths_up_to(seq_len),
        batch=batch,
        device=chosen_device(device),
        dtype=getattr(torch, dtype),
        attention=against,
        clock=clock,
        rounds=rounds,
        told=note,
    )
    if json:
        print_json(swaps)
        return
    write(swap_table(swaps, seq_len))
    write(
        f"\nblocks of width {d_model}, {batch} x {seq_len} tokens, {dtype}; "
        f"times are those of the same block with {against} over the mixer's"
    )


def default_mixers(against: str) -> list[str]:
    """The built-in kinds but the one that they are held against."""
    from mixers.reference import built_in

    return [kind for kind in built_in() if kind != against]


def chosen_device(name: str) -> "torch.device":
    """The device of a name; "auto" is a GPU where there is one."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def swap_table(swaps: "list[Swap]", seq_len: int) -> str:
    """One line a mixer: its ratios at the longest length, and from where on it pays."""
    from search.timing.swap import pays_from

    columns = (
        ("mixer", LEFT),
        ("FLOPs", RIGHT),
        ("forward", RIGHT),
        ("pays from", RIGHT),
        ("training", RIGHT),
        ("pays from", RIGHT),
    )
    rows = []
    for mixer in dict.fromkeys(swap.mixer for swap in swaps):
        own = [swap for swap in swaps if swap.mixer == mixer]
        at = {swap.kind: swap for swap in own if swap.seq_len == seq_len}
        cells = [mixer, f"{at['forward'].flops_ratio:.2f}"]
        for kind, swap in at.items():
            start = pays_from(own, kind)
            cells += [
                f"{swap.ratio:.2f} ({swap.least:.2f} to {swap.most:.2f})",
                f"not up to {seq_len}" if start is None else f"{start}",
            ]
        rows.append(tuple(cells))
    return table(columns, rows)
