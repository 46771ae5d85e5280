"""Write the tables of pages from the code: `python -m mixers.reference docs/mixers.md`.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; NAME is "claims", "costs",
"start", "checks" or the notation of one layer, whose claims follow. `docs/mixers.md` and
`docs/writing-a-mixer.md` have such tables.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mixers.catalogue import available, build, mixer_config
from mixers.conformance import CHECKS
from mixers.errors import MixerError
from mixers.measure import sizes_at_start
from mixers.notation import format_layer, parse_architecture
from mixers.registry import OWN_DISTRIBUTION, mixer_registry

TABLE = re.compile(r"(<!-- table: (?P<name>.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
SIZES = ((64, 64), (768, 128), (768, 2048))
"""(d_model, tokens) of the table of costs."""


def rewritten(page: str) -> str:
    """Return the page with its tables as the code has them now."""
    return TABLE.sub(lambda found: found[1] + "\n" + table(found["name"]) + "\n" + found[3], page)


def table(name: str) -> str:
    """Return one table as Markdown lines.

    Raises:
        SpecError: The name is no table's and no layer's notation.
    """
    rows = {
        "claims": claims,
        "costs": costs,
        "checks": check_rows,
        "start": start_rows,
    }.get(name)
    if rows is not None:
        return "".join(f"| {' | '.join(row)} |\n" for row in rows())
    (config,) = parse_architecture(name)
    traits = mixer_registry.load(config.kind).traits(config)
    return f"Claims: {sentence(traits.model_dump())}. Source: {traits.source}.\n"


def sentence(traits: dict[str, object]) -> str:
    """Return the claims in words."""
    reach, back = traits["reach"], traits["reach_causal"]
    parts = [
        "every token sees every other"
        if reach == "global"
        else f"a token sees {reach} on each side",
        "can be causal" if traits["causal"] else "cannot be causal",
        "linear in x" if traits["linear"] else "not linear in x",
        "order matters" if traits["position_aware"] else "permuting tokens permutes the output",
        f"work grows like {traits['cost']}",
    ]
    if back is not None:
        parts[1] += f" (then it sees {back} before it)"
    if traits["fixed_length"]:
        parts.append("bound to `max_seq_len`")
    if traits["surrogate_gradient"]:
        parts.append("the gradient is a surrogate")
    return "; ".join(parts)


def built_in() -> list[str]:
    """Return the kinds that come with this distribution."""
    return [kind for kind, info in available().items() if info.distribution == OWN_DISTRIBUTION]


def claims() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the overview."""
    yield ("kind", "code", "reach", "work", "linear", "order matters", "causal", "any length")
    yield ("---",) * 8
    for kind in built_in():
        mixer_type = mixer_registry.load(kind)
        traits = mixer_type.traits(build(kind, d_model=64, max_seq_len=64).config)
        flags = (traits.linear, traits.position_aware, traits.causal, not traits.fixed_length)
        words = ("yes" if flag else "no" for flag in flags)
        yield (f"`{kind}`", mixer_type.symbol, str(traits.reach), traits.cost, *words)


def costs() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of weights and FLOPs, of the defaults and the sparse patterns."""
    heads = [f"weights, N {n}, D {d} | FLOPs, N {n}, D {d}" for d, n in SIZES]
    yield ("layer", *heads)
    yield ("---",) + ("---: | ---:",) * len(SIZES)
    patterns = [
        f"sparse_attention(pattern={name})" for name in ("strided", "fixed", "star", "random")
    ]
    for notation in [*built_in(), *patterns]:
        (config,) = parse_architecture(notation)
        cells = []
        for d_model, tokens in SIZES:
            mixer = build(config, d_model=d_model, max_seq_len=tokens)
            weights = sum(parameter.numel() for parameter in mixer.parameters())
            flops = mixer.flops(mixer.config, d_model=d_model, seq_len=tokens)
            cells.append(f"{rounded(weights)} | {rounded(flops)}")
        yield (f"`{format_layer(config, d_model=None, max_seq_len=None)}`", *cells)


def start_rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of sizes at initialisation."""
    yield ("kind", "update", "of attention's", "gradient", "of attention's")
    yield ("---", "---:", "---:", "---:", "---:")
    wide = {"d_model": 64, "seq_len": 64}
    usual = sizes_at_start(mixer_config("attention"), **wide)
    for kind in built_in():
        sizes = sizes_at_start(mixer_config(kind), **wide)
        yield (
            f"`{kind}`",
            f"{sizes.update:.2g}",
            f"{sizes.update / usual.update:.2g}",
            f"{sizes.gradient:.2g}",
            f"{sizes.gradient / usual.gradient:.2g}",
        )


def check_rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of checks."""
    yield ("check", "holds if")
    yield ("---",) * 2
    for name, function in CHECKS.items():
        first = (function.__doc__ or "").strip().splitlines()[0]
        yield (f"`{name}`", first.rstrip("."))


def rounded(number: int) -> str:
    """Return three digits and a unit: 590,592 is "591 k"."""
    for limit, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= limit:
            return f"{number / limit:.3g} {unit}"
    return str(number)


def main(path: str) -> int:
    """Rewrite a page in place."""
    page = Path(path)
    try:
        text = rewritten(page.read_text(encoding="utf-8"))
    except MixerError as error:
        sys.stderr.write(f"{path}: {error}\n")
        return 2
    page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
