"""`search mixers route`: which tokens a stack lets see each other, and after how many layers."""

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.options import JsonOption
from search.cli.output import print_json, write

if TYPE_CHECKING:
    from mixers.receptive import Route

MOST_NAMED = 6
"""Pairs named in the text; JSON has all."""
SIZE = 64
"""Features and tokens of notation."""
WIDTH = 100
"""Of the line that names the mixers."""


def route_stack(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="Notation such as 'sparse_attention*4', a preset such as modernbert, or a file "
            "with an encoder spec.",
        ),
    ],
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens",
            min=1,
            max=8192,
            metavar="N",
            help="Tokens to look at; by default max_seq_len, at most 512.",
        ),
    ] = None,
    d_model: Annotated[
        int | None,
        typer.Option("--d-model", min=1, metavar="D", help="With notation: features; 64."),
    ] = None,
    seq_len: Annotated[
        int | None,
        typer.Option("--seq-len", min=1, metavar="N", help="With notation: longest input; 64."),
    ] = None,
    causal: Annotated[bool, typer.Option("--causal", help="No token sees a later one.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Draw it: .html, .png, .svg or .pdf."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show after how many layers tokens see each other, and which never do; trains nothing.

    Checks the three conditions under which sparse attention can represent every function of
    sequences (Yun et al. 2020, arXiv 2006.04862), for any mixers.
    """
    from mixers import route
    from search.cli.encoder_specs import has_sizes, read_spec
    from search.errors import InputError

    if (d_model or seq_len) and has_sizes(spec):
        raise InputError(
            f"{spec} has its own sizes: leave out --d-model and --seq-len; --tokens says how many "
            "tokens to look at"
        )
    sizes = {"d_model": d_model or SIZE, "seq_len": seq_len or SIZE}
    encoder = read_spec(spec, **sizes, d_ff=0, vocab_size=1)
    if causal and not encoder.causal:
        encoder = type(encoder).model_validate(encoder.model_dump() | {"causal": True})
    found = route(encoder, n_tokens=tokens)
    if out is not None:
        from search.cli.mixers_draw import draw
        from search.figures.route import route_figure

        draw(route_figure(found), out, title=found.notation)
    if json:
        print_json(document(found))
        return
    write("\n".join(lines(found)))


def document(found: "Route") -> dict[str, Any]:
    """Everything as JSON values."""
    return {
        "notation": found.notation,
        "code": found.code,
        "n_tokens": found.n_tokens,
        "n_layers": found.n_layers,
        "causal": found.causal,
        "conditions": found.conditions,
        "blind_layers": found.blind_layers,
        "chain": found.chain,
        "full_after": found.full_after,
        "seen_after": [found.seen_after(layers) for layers in range(found.n_layers + 1)],
        "n_pairs": found.n_pairs,
        "unseen_in_stack": found.unseen(within=found.n_layers),
        "never_seen": found.unseen(),
        "layers_until": found.layers_until,
    }


def lines(found: "Route") -> list[str]:
    """The answer as text."""
    kind = "causal, " if found.causal else ""
    title = f"{found.code}  {found.notation}, {kind}{found.n_tokens} tokens"
    text = [*wrap(title, WIDTH, subsequent_indent="  ", break_long_words=False), ""]
    text += [f"{name:<16}{words}" for name, words in condition_words(found)]
    text += ["", f"pairs (output, token) that have met, of {found.n_pairs:,}:"]
    # From there on nothing changes any more.
    last = min(found.n_layers, max(1, found.full_after or found.n_layers))
    text += [met_words(found, layers) for layers in range(1, last + 1)]
    never = found.unseen()
    if never:
        text += ["", f"never, however often the stack is repeated: {pair_words(found, never)}"]
    elif missing := found.unseen(within=found.n_layers):
        text += ["", f"not within this stack: {pair_words(found, missing)}"]
    return text


def met_words(found: "Route", layers: int) -> str:
    """How many pairs have met after that many layers; 100% are all of them."""
    met = found.seen_after(layers)
    share = f"{met / found.n_pairs:.0%}"
    if share == "100%" and met < found.n_pairs:
        share = ">99%"
    return f"  after layer {layers:<4}{met:>9,}  {share:>4}"


def condition_words(found: "Route") -> list[tuple[str, str]]:
    """Each condition and how it stands."""
    blind = ", ".join(map(str, found.blind_layers))
    self_loop = f"fails in layer {blind}" if blind else "holds: every token sees itself"
    chain = {
        "found": f"holds: {chain_words(found.chain.order)}",
        "impossible": "fails: neither of tokens {} and {} can reach the other".format(
            *(found.chain.apart or (0, 0))
        ),
        "not found": "unknown: none found, none ruled out",
    }[found.chain.state]
    if found.full_after is None:
        reached = "fails: some pairs never meet"
    elif found.full_after <= found.n_layers:
        reached = f"holds: after {count(found.full_after, 'layer')}"
    else:
        reached = (
            f"holds for the stack repeated, after {count(found.full_after, 'layer')}; "
            f"this one ends at {found.n_layers}"
        )
    if found.causal:
        reached += " (of tokens before it)"
    return [("self-loop", self_loop), ("chain", chain), ("all reach all", reached)]


def chain_words(order: tuple[int, ...]) -> str:
    """An order of tokens, in short."""
    if order == tuple(range(len(order))):
        return "the order of the text"
    if order == tuple(range(len(order)))[::-1]:
        return "the order of the text, backwards"
    shown = ", ".join(map(str, order[:MOST_NAMED]))
    return f"{shown}, ..." if len(order) > MOST_NAMED else shown


def pair_words(found: "Route", pairs: list[tuple[int, int]]) -> str:
    """Which pairs, by a rule where there is one."""
    nearest = min(abs(output - token) for output, token in pairs)
    places = range(found.n_tokens)
    ruled = {
        (output, token)
        for output in places
        for token in places
        if abs(output - token) >= nearest and (token <= output or not found.causal)
    }
    number = f"{len(pairs):,} pairs"
    if ruled == set(pairs):
        return f"{number}, all that are {nearest} or more apart"
    shown = ", ".join(f"({output}, {token})" for output, token in pairs[:MOST_NAMED])
    return f"{number}, such as {shown}"


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
