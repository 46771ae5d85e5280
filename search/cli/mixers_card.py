"""The card of `search mixers show KIND --measure`."""

from typing import TYPE_CHECKING, Any

from search.cli.output import LEFT, RIGHT, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mixers.measure import Card

CELLS = 16
"""Rows and columns of the picture, at most."""
MARKS = {"#": 0.5, "+": 0.1, "-": 0.01, ".": 1e-8}
"""Each character and the least share of the strongest influence that it stands for."""
LEGEND = "# at least 1/2 of the strongest, + 1/10, - 1/100, . less, blank none"


def card_document(card: "Card") -> dict[str, Any]:
    """Everything as JSON values."""
    return {
        "d_model": card.d_model,
        "seq_len": card.seq_len,
        "holds": card.holds,
        "parameters": card.parameters,
        "flops": card.flops,
        "attention_flops": card.attention_flops,
        "errors": card.errors,
        "sizes": card.sizes,
        "attention": card.attention,
        "ratios": card.ratios,
        "warnings": card.warnings,
        "influence": card.influence,
    }


def card_text(card: "Card") -> str:
    """The card as lines."""
    kept = sum(reason is None for reason in card.holds.values())
    lines = [f"measured at d_model {card.d_model}, {card.seq_len} tokens", ""]
    lines += [f"claims          {kept} of {len(card.holds)} checks hold"]
    lines += [f"  {name}: {reason}" for name, reason in card.holds.items() if reason is not None]
    share = f"; {card.flops / card.attention_flops:.2f} of attention's"
    lines += [
        f"cost            {amount(card.parameters)} parameters, {amount(card.flops)} FLOPs{share}",
        *(
            f"error           {error:.1e} of the largest output in {name}, against float64"
            for name, error in card.errors.items()
        ),
        "",
    ]
    columns = (("at initialisation", LEFT), ("RMS", RIGHT), ("attention", RIGHT), ("ratio", RIGHT))
    rows = [
        (name, f"{own:.3g}", f"{other:.3g}", f"{card.ratios[name]:.2f}")
        for name, own, other in (
            ("update", card.sizes.update, card.attention.update),
            ("gradient", card.sizes.gradient, card.attention.gradient),
        )
    ]
    lines.append(table(columns, rows))
    lines += [f"warning: {warning}" for warning in card.warnings]
    lines += ["", "who moves whom: row output, column token; " + LEGEND, *heat_map(card.influence)]
    return "\n".join(lines)


def amount(number: int) -> str:
    """A count with a decimal prefix, such as "1.2 M"; 0 is a count, too."""
    from search.wording import scaled

    return scaled(number) if number else "0"


def heat_map(influence: "Sequence[Sequence[float]]") -> list[str]:
    """The influence in characters, two a cell; cells of many tokens hold their strongest."""
    tokens = len(influence)
    step = -(-tokens // CELLS)
    strongest = max(map(max, influence)) or 1.0
    starts = range(0, tokens, step)
    return [
        "  "
        + "".join(
            2 * mark(max(max(row[i : i + step]) for row in influence[j : j + step]) / strongest)
            for i in starts
        ).rstrip()
        for j in starts
    ]


def mark(share: float) -> str:
    """The character of a share of the strongest influence."""
    return next((sign for sign, least in MARKS.items() if share >= least), " ")
