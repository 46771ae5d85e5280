"""The options that the commands of `search theory` share."""

from typing import Annotated, Literal

import typer

FeaturesOption = Annotated[
    int, typer.Option("--d", min=1, metavar="D", help="Features of a token.")
]
TokensOption = Annotated[int, typer.Option("--n", min=2, metavar="N", help="Tokens.")]
DeltaOption = Annotated[
    str, typer.Option("--delta", metavar="1/K", help="Width of the cubes: 1/2, 1/3, ...")
]
TheoremOption = Annotated[
    Literal["2", "3"],
    typer.Option("--theorem", help="2: permutation-equivariant; 3: with positions."),
]
