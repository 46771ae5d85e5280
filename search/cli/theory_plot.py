"""`search theory plot`: the ids of a sequence before, during and after the shifts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.theory_options import DeltaOption, FeaturesOption, TheoremOption, TokensOption

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from mixers.theory.sizes import Sizes

MOST_SHIFTS = 100_000


def plot_sweep(
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Draw to: .html, .png, .svg or .pdf.")
    ],
    d: FeaturesOption = 2,
    n: TokensOption = 3,
    delta: DeltaOption = "1/4",
    theorem: TheoremOption = "2",
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Seed of the sequence.")] = 0,
) -> None:
    """Draw the ids of the tokens of one random sequence after each layer that acts."""
    import random

    from mixers.theory.cases import any_columns, case_of, distinct_columns
    from mixers.theory.sizes import MOST_BITS, in_words
    from search.cli.mixers_draw import draw
    from search.cli.theory_sizes import sizes_of
    from search.errors import InputError

    sizes = sizes_of(d, n, delta, theorem)
    if sizes.largest_entry.bit_length() > MOST_BITS:
        raise InputError(
            f"ids up to {in_words(sizes.largest_entry)} units are too large to draw; "
            "take a smaller --n or --d, or a larger --delta"
        )
    columns = any_columns if sizes.theorem == 3 else distinct_columns
    case = case_of(sizes, columns(sizes, random.Random(seed)))
    stages = sweep(sizes, [list(token) for token in case.tokens])
    title = f"Theorem {theorem}: d = {d}, n = {n}, delta = {sizes.delta}"
    draw(sweep_figure(stages, title), out, title=title)


def sweep(sizes: "Sizes", tokens: list[list[int]]) -> list[tuple[str, list[int]]]:
    """Return (name, ids) before the shifts, after each one that acts, and after the last layer.

    Raises:
        InputError: There are too many shifts to run them all.
    """
    from mixers.theory.context import global_layer, shift_layers
    from mixers.theory.layers import ShiftLayer, SignLayer, Tokens, dot
    from search.errors import InputError

    if sizes.n_layers["shifts"] > MOST_SHIFTS:
        raise InputError(
            f"{sizes.n_layers['shifts']:,} shifts are too many to draw (at most {MOST_SHIFTS:,}); "
            "take a smaller --d or a larger --delta"
        )
    layers: list[ShiftLayer | SignLayer] = [*shift_layers(sizes), global_layer(sizes)]
    now: Tokens = [list(token) for token in tokens]
    stages = [("quantised", [int(dot(sizes.u, token)) for token in now])]
    for layer in layers:
        after = layer(now)
        if after != now:
            name = f"shift at {layer.level}" if isinstance(layer, ShiftLayer) else "global layer"
            stages.append((name, [int(dot(sizes.u, token)) for token in after]))
        now = after
    return stages


def sweep_figure(stages: list[tuple[str, list[int]]], title: str) -> "Figure":
    """Lines of ids, one a token, over the layers that act; logarithmic, id + 1."""
    from plotly.graph_objects import Figure, Scatter

    from search.figures.style import MIXER_COLOURS, noted

    names = [name for name, _ in stages]
    figure = Figure()
    for j in range(len(stages[0][1])):
        figure.add_trace(
            Scatter(
                x=names,
                y=[float(ids[j]) + 1 for _, ids in stages],
                mode="lines+markers",
                name=f"token {j}, id {stages[0][1][j]}",
                line={"color": MIXER_COLOURS[j % len(MIXER_COLOURS)]},
            )
        )
    figure.update_layout(
        template="plotly_white",
        title={"text": f"{title}: ids after each layer that acts", "x": 0.01},
        width=820,
        height=480,
        margin={"l": 80, "r": 30, "t": 70, "b": 95},
    )
    figure.update_yaxes(type="log", title_text="id + 1, units of delta")
    return noted(figure, "Each shift lifts the tokens of one id above all others.")
