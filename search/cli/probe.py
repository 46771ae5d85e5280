"""`search probe`: how well an architecture tells contexts apart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from search.cli.options import JsonOption
from search.cli.output import note, print_json, write

if TYPE_CHECKING:
    from mixers import EncoderSpec

FILE_ENDINGS = (".yaml", ".yml", ".json")


def probe(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="A file with an encoder spec, or notation such as 'sepconv*2, attention*2'.",
        ),
    ],
    size: Annotated[
        Literal["small", "full"],
        typer.Option("--size", help="small is what every trial runs; full has every stratum."),
    ] = "full",
    seed: Annotated[
        int, typer.Option("--seed", metavar="S", help="Seed of weights, contexts and edits.")
    ] = 0,
    d_model: Annotated[
        int, typer.Option("--d-model", min=1, metavar="D", help="With notation: features.")
    ] = 64,
    d_ff: Annotated[
        int, typer.Option("--d-ff", min=0, metavar="F", help="With notation: feed-forward width.")
    ] = 256,
    seq_len: Annotated[
        int, typer.Option("--seq-len", min=2, metavar="N", help="With notation: tokens.")
    ] = 64,
    vocab_size: Annotated[
        int, typer.Option("--vocab-size", min=2, metavar="V", help="With notation: token ids.")
    ] = 512,
    json: JsonOption = False,
) -> None:
    """Measure how distinct an architecture, as initialised, makes a token's contexts.

    Reads in float64 what the layers can tell apart, and in float32 what is lost to precision.
    """
    from search.errors import InputError
    from search.probe import ProbeError, probe_spec

    encoder = read_spec(spec, d_model=d_model, d_ff=d_ff, seq_len=seq_len, vocab_size=vocab_size)
    if size == "full":
        note("probing in full: half a minute for four narrow layers; --size small takes seconds")
    try:
        reading = probe_spec(encoder, seed=seed, size=size)
    except ProbeError as error:
        raise InputError(str(error)) from None
    if json:
        print_json(
            {
                "arch_id": encoder.arch_id,
                "code": encoder.code,
                "notation": encoder.notation,
                "seed": seed,
                "size": size,
                "readings": reading.readings,
            }
        )
        return
    write(f"{encoder.code}  {encoder.notation}, as initialised from seed {seed}\n")
    write(f"\n{reading.text}")


def read_spec(
    text: str, *, d_model: int, d_ff: int, seq_len: int, vocab_size: int
) -> "EncoderSpec":
    """Read an encoder spec from a file, or build one from notation and sizes.

    Raises:
        InputError: The file cannot be read.
        SpecError: It is no valid spec.
    """
    from pydantic import ValidationError

    from mixers import EncoderSpec
    from mixers.errors import SpecError
    from mixers.explain import explain, load
    from search.errors import InputError
    from search.study_file import parse_yaml, plain

    path = Path(text)
    if path.suffix.lower() in FILE_ENDINGS or path.is_file():
        try:
            content = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path}: not a text file in UTF-8") from None
        try:
            return load(EncoderSpec, plain(parse_yaml(content, source=str(path))))
        except SpecError as error:
            raise InputError(f"{path}: {'; '.join(str(error).splitlines())}") from None
    try:
        return EncoderSpec.of(
            text, d_ff=d_ff, d_model=d_model, max_seq_len=seq_len, vocab_size=vocab_size
        )
    except ValidationError as error:
        raise SpecError("; ".join(explain(error, EncoderSpec))) from None
