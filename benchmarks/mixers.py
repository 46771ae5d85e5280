"""Speed of the mixers against PyTorch's primitives, other code bases and the machine's ceilings.

    python -m benchmarks.mixers [--quick] [--retune] [--out FOLDER]

At every shape all calls are made in turn, one round after the other, in one process; a ratio is
taken within a round, and the median over the rounds is printed. What a bar is set for, and what is
a difference of times, is then called in five times as many rounds without the others; a difference
is one of medians over as many rounds as the others have. Writes mixers.jsonl, mixers.md and
mixers.png; what is in mixers.jsonl already is not measured again. `--retune` measures the back ends
of the shared convolution on this device and writes `mixers/convolution_table.py` anew; it measures
nothing else. On a GPU times are between CUDA events and every mixer is timed compiled, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.mixers_cases import COMPARISONS, Bench, Comparison, Shape, settings
from benchmarks.mixers_figure import draw
from benchmarks.mixers_page import page
from benchmarks.mixers_retune import retune
from benchmarks.rows import read_rows
from search.timing.latency import device_name
from search.timing.stopwatch import Pass, Stopwatch, interleaved
from search.timing.swap import measure_swaps

RESULTS = Path(__file__).parent / "results"
SHAPES = ((8, 128), (2, 512), (1, 2048))
BLOCKS = ((1, 128), (1, 512), (1, 2048), (8, 128), (8, 512))
PAPER_WIDTH = 768
"""The bars of mixing steps are for this width."""
CAREFUL = 5
"""Times as many rounds for what a bar is set for, and for differences of times."""
RETUNE = 3
"""Times as many rounds as elsewhere: what the table says stays for long."""
KINDS: tuple[Pass, ...] = ("forward", "training")
Row = dict[str, Any]


def main() -> None:
    """Measures, then writes rows, page and picture."""
    options = arguments()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    if options.retune:
        retune(device, options.clock, RETUNE * options.rounds)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    rows_file = options.out / "mixers.jsonl"
    rows = read_rows(rows_file)
    started = False
    for part in parts(options, device):
        if part.known(rows):
            continue
        if not started:
            started = True
            append(rows_file, rows, [machine(options, device)])
        print(f"# {part.name}  load {os.getloadavg()[0]:.1f}", flush=True)
        append(rows_file, rows, part.measure())
        gc.collect()
    text = page(rows)
    (options.out / "mixers.md").write_text(text, encoding="utf-8")
    draw(rows, options.out / "mixers.png")
    print(text)


def arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--widths", type=int, nargs="+", default=(768, 256))
    parser.add_argument("--dtypes", nargs="+", default=("float32", "bfloat16"))
    parser.add_argument("--quick", action="store_true", help="width 256, float32, no long blocks")
    parser.add_argument("--compile", action="store_true", help="on a CPU, too")
    parser.add_argument("--retune", action="store_true", help="write the table of back ends anew")
    options = parser.parse_args()
    if options.quick:
        options.widths, options.dtypes = (256,), ("float32",)
    return options


@dataclass(frozen=True)
class Part:
    """Rows that are measured together, in turn; `key` is what they have in common."""

    name: str
    key: Row
    measure: Callable[[], Iterable[Row]]

    def known(self, rows: Iterable[Row]) -> bool:
        """Whether an earlier call measured it."""
        return any(self.key.items() <= row.items() for row in rows)


def parts(options: argparse.Namespace, device: torch.device) -> Iterator[Part]:
    """Yields what there is to measure: whole blocks and growth between the first two shapes."""
    stopwatch = Stopwatch(device, options.clock)
    compiled = options.compile or device.type == "cuda"
    for dtype in options.dtypes:
        for d_model in options.widths:
            for batch, seq_len in SHAPES:
                for kind in KINDS:
                    shape = Shape(d_model, batch, seq_len, dtype, kind)
                    measure = partial(at_shape, shape, device, stopwatch, options.rounds, compiled)
                    yield Part(f"{shape}", {"row": "ratio", **asdict(shape)}, measure)
            if (dtype, d_model) == (options.dtypes[0], options.widths[0]):
                yield from once(options, device, stopwatch)


def once(options: argparse.Namespace, device: torch.device, stopwatch: Stopwatch) -> Iterator[Part]:
    """Yields what is measured at one width, in float32."""
    d_model = options.widths[0]
    measure = partial(growth, d_model, options.rounds, device, stopwatch)
    yield Part("growth", {"row": "growth", "d_model": d_model}, measure)
    for batch, seq_len in BLOCKS[: 3 if options.quick else None]:
        key = {"row": "block", "d_model": d_model, "batch": batch, "seq_len": seq_len}
        yield Part(f"blocks, {batch} x {seq_len}", key, partial(blocks, options, device, **key))


def append(file: Path, rows: list[Row], more: Iterable[Row]) -> None:
    """Adds the rows of one part, all or none."""
    found = list(more)
    rows += found
    with file.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in found)


def machine(options: argparse.Namespace, device: torch.device) -> Row:
    """What the numbers were measured on."""
    return {
        "row": "machine",
        "device": device_name(device),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": options.threads,
        "clock": "CUDA events" if device.type == "cuda" else options.clock,
        "load": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
        "rounds": options.rounds,
    }


def processor() -> str:
    """The name of the CPU's model."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def at_shape(
    shape: Shape, device: torch.device, stopwatch: Stopwatch, rounds: int, compiled: bool
) -> Iterator[Row]:
    """Yields times and ratios of all calls at one shape."""
    bench = Bench(shape, device, compiled=compiled)
    bench.ceilings()  # what follows a large copy finds cold caches: here a mixer without a peer
    bench.ours()
    bench.peers()
    seconds = interleaved(bench.calls, stopwatch, rounds=rounds)
    where = asdict(shape)
    for name, values in seconds.items():
        yield {"row": "time", **where, "name": name, **spread(values)}
    compared = [each for each in COMPARISONS if {each.ours, each.peer} <= seconds.keys()]
    for each in compared:
        timed = seconds
        if needs_care(each, shape):
            # Beside nothing else: what a machine does meanwhile is the same to all of them.
            calls = {name: bench.calls[name] for name in each.calls}
            timed = interleaved(calls, stopwatch, rounds=CAREFUL * rounds)
        values = ratios(each, timed, rounds)
        weighted = [each.weight(shape) * value for value in values]
        bar = bar_of(each, shape)
        yield {"row": "ratio", **where, "name": each.name, "bar": bar, **spread(weighted)}


def needs_care(comparison: Comparison, shape: Shape) -> bool:
    """Whether few rounds would not do."""
    return bool(comparison.minus) or bar_of(comparison, shape) is not None


def ratios(comparison: Comparison, seconds: dict[str, list[float]], group: int) -> list[float]:
    """The ratio of every round; of a difference, that of every `group` rounds' medians.

    Nothing left of ours counts as the smallest step of the clock.
    """
    if comparison.minus:
        seconds = {name: medians(seconds[name], group) for name in comparison.calls}
    found = []
    for turn, own in enumerate(seconds[comparison.ours]):
        rest = own - sum(seconds[name][turn] for name in comparison.minus)
        found.append(seconds[comparison.peer][turn] / max(rest, 1e-9))
    return found


def medians(values: list[float], group: int) -> list[float]:
    """The median of every `group` values."""
    starts = range(0, len(values), group)
    return [statistics.median(values[start : start + group]) for start in starts]


def bar_of(comparison: Comparison, shape: Shape) -> float | None:
    """The least ratio wanted at a shape, or None."""
    if shape.dtype not in comparison.formats or shape.kind not in comparison.kinds:
        return None
    if comparison.minus and shape.d_model < PAPER_WIDTH:
        return None
    return comparison.bars.get(shape.seq_len, comparison.bars.get(0))


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def growth(d_model: int, rounds: int, device: torch.device, stopwatch: Stopwatch) -> Iterator[Row]:
    """Yields how many times longer one sequence of 2,048 tokens takes than one of 128."""
    short, long = (Bench(Shape(d_model, 1, n, "float32", "training"), device) for n in (128, 2048))
    for bench in (short, long):
        bench.ours()
    for name in settings(d_model):
        pair = {"short": short.calls[name], "long": long.calls[name]}
        seconds = interleaved(pair, stopwatch, rounds=rounds, warm_up=2)
        values = [b / a for a, b in zip(seconds["short"], seconds["long"], strict=True)]
        yield {"row": "growth", "d_model": d_model, "name": name, **spread(values)}


def blocks(options: argparse.Namespace, device: torch.device, **key: Any) -> Iterator[Row]:
    """Yields whole blocks against the same block with fused attention, at one shape."""
    known = settings(key["d_model"])
    swaps = measure_swaps(
        [known[name] for name in ("sepconv", "sparse_attention", "average")],
        d_model=key["d_model"],
        seq_lens=[key["seq_len"]],
        batch=key["batch"],
        device=device,
        dtype=torch.float32,
        attention=known["attention"],
        clock=options.clock,
        rounds=options.rounds,
    )
    for swap in swaps:
        yield {**key, **asdict(swap)}


if __name__ == "__main__":
    main()
