"""`search theory`: the theorems as networks, and their certificates."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.options import JsonOption
from search.cli.output import LEFT, RIGHT, json_text, print_json, save, table, write
from search.cli.pace import Ticker
from search.cli.theory_build import build_network
from search.cli.theory_options import DeltaOption, FeaturesOption, TheoremOption, TokensOption
from search.cli.theory_plot import plot_sweep
from search.cli.theory_soften import soften_network

if TYPE_CHECKING:
    from mixers.theory.certificate import Certificate
    from mixers.theory.tightness import Tightness

app = typer.Typer(
    help="Build and certify the networks of Yun et al. 2020 (arXiv 1912.10077).",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

app.command("build")(build_network)
app.command("soften")(soften_network)
app.command("plot")(plot_sweep)


@app.command("verify")
def verify(
    d: FeaturesOption = 2,
    n: TokensOption = 3,
    delta: DeltaOption = "1/2",
    theorem: TheoremOption = "2",
    sample: Annotated[
        int,
        typer.Option(
            "--sample", min=100, metavar="M", help="Inputs to draw where there are over a million."
        ),
    ] = 20_000,
    seed: Annotated[
        int, typer.Option("--seed", metavar="S", help="Seed of the sample and of the points.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the JSON to a file.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check every numbered property of the proof; exit code 1 where one does not hold.

    All inputs are taken up to a million, else a sample. Numbers are in units of delta.
    """
    from mixers.theory.certificate import certify
    from search.cli.theory_sizes import sizes_of
    from search.errors import RunFailedError

    sizes = sizes_of(d, n, delta, theorem)
    certificate = certify(sizes, sample=sample, seed=seed, on_progress=Ticker("inputs checked"))
    found = document(certificate)
    if out is not None:
        save(json_text(found), out)
    if json:
        print_json(found)
    else:
        write(text(certificate))
    if certificate.failures:
        names = "; ".join(claim.name for claim in certificate.failures)
        raise RunFailedError(f"does not hold: {names}")


def document(certificate: "Certificate") -> dict[str, Any]:
    """Everything as JSON values."""
    from mixers.theory.tightness import tightness_table

    sizes, selection = certificate.sizes, certificate.selection
    return {
        "theorem": sizes.theorem,
        "d": sizes.d,
        "n": sizes.n,
        "delta": str(sizes.delta),
        "subject": certificate.subject,
        "inputs": {
            "total": str(selection.total),
            "sampled": selection.sampled,
            "seed": selection.seed,
        },
        "holds": not certificate.failures,
        "notes": certificate.notes,
        "claims": certificate.claims,
        "tightness": [tightness_values(row) for row in tightness_table(sizes)],
    }


def tightness_values(row: "Tightness") -> dict[str, Any]:
    """One row of the comparison as JSON values; large counts as text, which loses no digit."""
    return {
        "d": row.sizes.d,
        "n": row.sizes.n,
        "delta": str(row.sizes.delta),
        "layers": str(row.layers),
        "parameters": str(row.parameters),
        "residual_layers": str(row.residual_layers),
        "residual_parameters": str(row.residual_parameters),
        "numbers_to_store": str(row.numbers),
        "residual_over_construction": row.ratio,
        "n_factorial": row.gain,
    }


def text(certificate: "Certificate") -> str:
    """The certificate as text."""
    from mixers.theory.tightness import tightness_table

    sizes = certificate.sizes
    head = (
        f"Theorem {sizes.theorem}: d = {sizes.d}, n = {sizes.n}, delta = {sizes.delta}, "
        f"B = {sizes.B} different columns\n"
        f"inputs: {certificate.selection.words}; run: {certificate.subject}"
    )
    notes = [f"note: {words}" for words in certificate.notes]
    claims = table(
        (("claim", LEFT), ("expected", LEFT), ("measured", LEFT), ("holds", LEFT)),
        (
            (claim.name, claim.expected, claim.measured, "yes" if claim.holds else "NO")
            for claim in certificate.claims
        ),
        flexible=("claim", "expected", "measured"),
    )
    failed = len(certificate.failures)
    verdict = f"{failed} of {len(certificate.claims)} claims do not hold"
    if not failed:
        verdict = f"all {len(certificate.claims)} claims hold"
    parts = ["\n".join([head, *notes]), claims, verdict, tightness_text(tightness_table(sizes))]
    return "\n\n".join(parts)


def tightness_text(rows: list["Tightness"]) -> str:
    """The table of section 5.4."""
    from mixers.theory.sizes import in_words

    headers = ("d", "n", "delta", "layers", "parameters", "residual layers", "residual parameters")
    columns = [(header, RIGHT) for header in (*headers, "ratio", "n!")]
    cells = (
        (
            str(row.sizes.d),
            str(row.sizes.n),
            str(row.sizes.delta),
            short(row.layers),
            short(row.parameters),
            short(row.residual_layers),
            short(row.residual_parameters),
            in_words(row.ratio, ".2f"),
            in_words(row.gain),
        )
        for row in rows
    )
    title = "section 5.4: this construction against a flattened residual network, by formula"
    return f"{title}\n{table(columns, cells)}"


def short(number: int) -> str:
    """A count, shortened where it has more than twelve digits."""
    from mixers.theory.sizes import in_words

    return in_words(number, "," if number < 10**12 else ".3e")
