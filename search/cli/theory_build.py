"""`search theory build`: the network that approximates a given function."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from search.cli.options import JsonOption
from search.cli.output import note, print_json, write
from search.cli.theory_options import FeaturesOption, TheoremOption, TokensOption

if TYPE_CHECKING:
    from mixers.theory.cubes import Function

POINTS = 20_000
SEED = 0


def build_network(
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="NAME|MODULE:FUNCTION",
            help="mean, centred, previous (--theorem 3), or a function of tensors (B, n, d).",
        ),
    ] = "mean",
    d: FeaturesOption = 1,
    n: TokensOption = 2,
    delta: Annotated[
        str | None,
        typer.Option("--delta", metavar="1/K", help="Width of the cubes; else --eps chooses it."),
    ] = None,
    eps: Annotated[
        float,
        typer.Option(
            "--eps", min=1e-6, metavar="E", help="Halve delta until d_2(f, cubes) <= E/3."
        ),
    ] = 0.1,
    theorem: TheoremOption = "2",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--export", metavar="DIR", help="Write spec.json and model.safetensors for mixers.load."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Build the float64 network of a function and measure how far it is from it.

    Values are rounded to the spacing of floats at the largest id, or at the largest value. A target
    that is not permutation-equivariant is refused without --theorem 3.
    The distance d_2 is taken over [0, 1]^(d x n) on 20,000 uniform points with seed 0. Exit code 1
    where no delta down to 1/256 brings the cubes within E/3.
    """
    from mixers.folder import save
    from mixers.theory.cubes import OnCubes, mean_distance, require_target, uniform
    from mixers.theory.network import build
    from mixers.theory.sizes import Sizes
    from search.cli.theory_sizes import sizes_of

    function = function_of(target)
    which: Literal[2, 3] = 3 if theorem == "3" else 2
    require_target(function, d, n, which)
    if delta is None:
        sizes = Sizes(d, n, chosen_width(function, d, n, eps=eps, theorem=which), which)
    else:
        sizes = sizes_of(d, n, delta, theorem)
    cubes = OnCubes(function, sizes)
    network = build(sizes, cubes)
    x = uniform(sizes, points=POINTS, seed=SEED)
    wanted, on_cubes, got = function(x), cubes.at(x), network.run(x, *network.parts)
    largest = max(float(network.largest_id * sizes.delta), float(on_cubes.abs().max()))
    rounding = largest * 2.0**-52
    found = {
        "theorem": sizes.theorem,
        "d": d,
        "n": n,
        "delta": str(sizes.delta),
        "target": target,
        "blocks": len(network.encoder.blocks),
        "distance_function_cubes": mean_distance((wanted - on_cubes).abs(), 2.0),
        "distance_cubes_network": mean_distance((on_cubes - got).abs(), 2.0),
        "distance_function_network": mean_distance((wanted - got).abs(), 2.0),
        "size_of_function": mean_distance(wanted.abs(), 2.0),
        "rounding": rounding,
        "share_of_points_off_the_cubes": float(
            ((on_cubes - got).abs() > rounding).flatten(1).any(1).double().mean()
        ),
    }
    if folder is not None:
        save(network.encoder, folder)
        note(f"wrote {folder}")
    if json:
        print_json(found)
        return
    write(text(found))


def function_of(name: str) -> "Function":
    """Find a target by name, or import it.

    Raises:
        InputError: There is none of this name, or it cannot be imported.
    """
    from importlib import import_module

    from mixers.theory.cubes import FUNCTIONS
    from search.errors import InputError

    if name in FUNCTIONS:
        return FUNCTIONS[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        known = ", ".join(FUNCTIONS)
        raise InputError(f"--target {name!r} is none of {known}, nor MODULE:FUNCTION")
    try:
        found: Function = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"--target {name!r}: {error}") from None
    return found


def chosen_width(
    function: "Function", d: int, n: int, *, eps: float, theorem: Literal[2, 3]
) -> int:
    """Halve delta until the cubes are near enough and return 1 / delta.

    Raises:
        RunFailedError: The finest width that is tried is still too coarse.
        TheoryError: There are more tokens than the finest cubes have columns.
    """
    from mixers.theory.cubes import FINEST, choose_delta
    from mixers.theory.sizes import Sizes
    from search.errors import RunFailedError

    Sizes(d, n, FINEST, theorem)
    finest = choose_delta(function, d, n, eps=eps, theorem=theorem)[-1]
    if finest.distance > eps / 3:
        raise RunFailedError(
            f"--eps {eps:g}: with delta = 1/{finest.K}, the finest that is tried, "
            f"d_2(f, cubes) = {finest.distance:.3g} is still more than eps / 3 = {eps / 3:.3g}; "
            f"ask for --eps {3.2 * finest.distance:.2g} or more, or name a smaller --delta"
        )
    return finest.K


def text(found: dict[str, Any]) -> str:
    """The measurements as text."""
    lines = [
        f"Theorem {found['theorem']} for {found['target']}: d = {found['d']}, n = {found['n']}, "
        f"delta = {found['delta']}, {found['blocks']:,} blocks",
        f"d_2(f, 0)              {found['size_of_function']:.5f}",
        f"d_2(f, cubes)          {found['distance_function_cubes']:.5f}",
        f"d_2(cubes, network)    {found['distance_cubes_network']:.5f}  "
        f"off by more than rounding ({found['rounding']:.1e}) on "
        f"{found['share_of_points_off_the_cubes']:.2%} of the points",
        f"d_2(f, network)        {found['distance_function_network']:.5f}",
    ]
    return "\n".join(lines)
