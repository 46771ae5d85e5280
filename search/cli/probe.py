"""`search probe`: how well a network tells contexts apart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from search.cli.encoder_specs import is_file, read_spec
from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from search.cli.output import note, print_json, write

if TYPE_CHECKING:
    from search.messages import Message
    from search.probe import Examined
    from search.probe.subjects import Subject

TOKENS = 64


def probe(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT",
            help="Notation such as 'sepconv*2, attention*2', a preset such as bert-base, a file "
            "with an encoder spec, a folder of a saved encoder or of a BERT model, or the study of "
            "a trial.",
        ),
    ],
    trial: Annotated[
        int | None,
        typer.Argument(
            metavar="[TRIAL]", min=0, help="Number of a stored trial; alone, of the only study."
        ),
    ] = None,
    size: Annotated[
        Literal["small", "full"],
        typer.Option("--size", help="small is what every trial runs; full has every stratum."),
    ] = "full",
    at: Annotated[
        Literal["init", "final"],
        typer.Option(
            "--at", help="Of a trial: as initialised, or after training, which is done once more."
        ),
    ] = "final",
    layers: Annotated[
        Literal["last", "all"] | None,
        typer.Option(
            "--layers", help="Read the last block alone, or each layer; full: all, small: last."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Draw it: .html, .png, .svg or .pdf."),
    ] = None,
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
        int | None,
        typer.Option(
            "--seq-len",
            min=2,
            metavar="N",
            help="Tokens of a context; notation, a preset: 64, a file: its longest, a folder: at "
            "most 64.",
        ),
    ] = None,
    vocab_size: Annotated[
        int, typer.Option("--vocab-size", min=2, metavar="V", help="With notation: token ids.")
    ] = 512,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="SOURCE",
            help="With a folder: read contexts from text, not at random.",
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Measure how distinct a network makes a token's contexts: as initialised, or trained.

    Reads in float64 what the layers can tell apart, and in float32 what is lost to precision.
    The store keeps a trial's readings (`search show`), not its weights: it is trained again first.
    """
    from search.errors import InputError
    from search.probe import BASES, ProbeError, examine
    from search.probe.subjects import architecture, saved_model

    if text is not None and not Path(subject).is_dir():
        raise InputError("--text needs a folder with a model and its tokenizer")
    if trial is not None or subject.isdigit():
        asked = stored(store, subject, trial, at, BASES[size])
    elif Path(subject).is_dir():
        asked = saved_model(Path(subject), BASES[size], seed=seed, n_tokens=seq_len, text=text)
    else:
        spec = read_spec(
            subject, d_model=d_model, d_ff=d_ff, seq_len=seq_len or TOKENS, vocab_size=vocab_size
        )
        n_tokens = seq_len or (None if is_file(subject) else TOKENS)
        asked = architecture(spec, BASES[size], seed=seed, n_tokens=n_tokens)
    if size == "full":
        note("probing in full: half a minute for four narrow layers; --size small takes seconds")
    try:
        found = examine(
            asked.encoder,
            asked.contexts,
            asked.vocabulary,
            seed=asked.seed,
            size=size,
            when=asked.when,
            layers=layers,
        )
    except ProbeError as error:
        raise InputError(str(error)) from None
    if out is not None:
        from search.cli.mixers_draw import draw
        from search.figures.probe import probe_figure

        draw(probe_figure(found, title=asked.spec.code, subtitle=asked.title), out, title="probe")
    if json:
        print_json(document(asked, found, size))
    else:
        write(page(asked, found, size))


def stored(
    url: str, subject: str, number: int | None, at: Literal["init", "final"], n_contexts: int
) -> "Subject":
    """Find a trial and train it again, unless it is wanted as initialised."""
    from search.cli.opening import find_study, find_trial, open_store, spec_of
    from search.cli.pace import Ticker
    from search.messages import Progress
    from search.probe.subjects import stored_trial
    from search.settings import settings
    from search.wording import time_text

    with open_store(url) as opened:
        study = find_study(opened, None if number is None else subject)
        row = find_trial(opened, study, int(subject) if number is None else number)
        whole = opened.trial(row.id)
    if at == "final" and row.seconds is not None:
        note(f"training trial {row.number} again; the first time took {time_text(row.seconds)}")
    ticker = Ticker("steps")

    def told(message: "Message") -> None:
        if isinstance(message, Progress):
            ticker(message.step, message.steps)

    return stored_trial(
        spec_of(study),
        row,
        whole,
        n_contexts,
        when=at,
        cache_dir=settings().cache_dir,
        report=told,
    )


def document(asked: "Subject", found: "Examined", size: str) -> dict[str, Any]:
    """Everything as JSON values."""
    return {
        "subject": asked.title,
        "arch_id": asked.spec.arch_id,
        "code": asked.spec.code,
        "notation": asked.spec.notation,
        "when": asked.when,
        "contexts": asked.source,
        "seed": asked.seed,
        "size": size,
        "readings": found.reading.readings,
    }


def page(asked: "Subject", found: "Examined", size: Literal["small", "full"]) -> str:
    """The readings as text."""
    from search.probe import STRATA_OF
    from search.probe.text import layer_table

    layers = layer_table(found.reading.readings, STRATA_OF[size])
    parts = [f"{asked.title}\non {asked.source}", found.reading.text, layers]
    return "\n\n".join(part for part in parts if part)
