"""`search theory soften`: what softmax and ReLU cost in place of hardmax and jumps."""

from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import JsonOption
from search.cli.output import RIGHT, print_json, table, write
from search.cli.theory_options import TheoremOption, TokensOption

if TYPE_CHECKING:
    from mixers.theory.soften import Softness

POINTS = 4000
HALVINGS = 6
EPS_BITS = (3, 5, 7, 10)


def soften_network(
    d: Annotated[int, typer.Option("--d", min=2, metavar="D", help="Features of a token.")] = 2,
    n: TokensOption = 2,
    delta: Annotated[
        str, typer.Option("--delta", metavar="1/K", help="Width of the cubes: 1/2, 1/4, ...")
    ] = "1/2",
    theorem: TheoremOption = "2",
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", min=1e-12, metavar="T", help="Error of ids to be reached."),
    ] = 1e-3,
    json: JsonOption = False,
) -> None:
    """Measure Lemma 9: softmax attention and four ReLUs a layer in place of hardmax and jumps.

    Ids are compared at the centres of all cubes with distinct columns, outputs on 4,000 uniform
    points with seed 0; the values are those that `search theory verify` uses.
    """
    import torch

    from mixers.theory.cubes import uniform
    from mixers.theory.network import build
    from mixers.theory.soften import softness, sufficient_inverse_temperature
    from mixers.theory.targets import Scrambled
    from mixers.theory.tokenwise import contexts
    from search.cli.theory_sizes import sizes_of

    sizes = sizes_of(d, n, delta, theorem)
    network = build(sizes, Scrambled(sizes))
    centres = (torch.tensor(list(contexts(sizes)), dtype=torch.float64) + 0.5) / sizes.K
    enough = sufficient_inverse_temperature(sizes, tolerance)
    narrow = 2.0 ** -EPS_BITS[-1]
    settings = [(enough / 2**k, narrow) for k in range(HALVINGS, -1, -1)]
    settings += [(enough, 2.0**-bits) for bits in EPS_BITS[:-1]]
    points = uniform(sizes, points=POINTS, seed=0)
    rows = softness(network, centres, points, settings)
    if json:
        print_json(
            {
                "theorem": sizes.theorem,
                "d": d,
                "n": n,
                "delta": str(sizes.delta),
                "tolerance": tolerance,
                "sufficient_inverse_temperature": enough,
                "rows": rows,
            }
        )
        return
    head = (
        f"Theorem {sizes.theorem}: d = {d}, n = {n}, delta = {sizes.delta}; an inverse temperature "
        f"of {enough:.1f} suffices for ids within {tolerance:g}"
    )
    write(f"{head}\n\n{rows_text(rows, bands=d * n)}")


def rows_text(rows: list["Softness"], *, bands: int) -> str:
    """The measurements as a table."""
    columns = (
        ("inverse temperature", RIGHT),
        ("eps / delta", RIGHT),
        ("error of ids", RIGHT),
        ("points off by > 0.01", RIGHT),
        ("measure of the bands", RIGHT),
    )
    cells = (
        (
            f"{row.inverse_temperature:.1f}",
            f"{row.quantizer_eps:.5f}",
            f"{row.ids:.2e}",
            f"{row.off:.2%}",
            f"<= {min(1.0, bands * row.quantizer_eps):.2%}",
        )
        for row in rows
    )
    return table(columns, cells)
