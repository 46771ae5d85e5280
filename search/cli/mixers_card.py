"""The card of `search mixers show KIND --measure`."""

from typing import TYPE_CHECKING, Any

from search.cli.output import LEFT, RIGHT, table

if TYPE_CHECKING:
    from mixers.measure import Card


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
    from search.wording import scaled

    kept = sum(reason is None for reason in card.holds.values())
    lines = [f"measured at d_model {card.d_model}, {card.seq_len} tokens", ""]
    lines += [f"claims          {kept} of {len(card.holds)} checks hold"]
    lines += [f"  {name}: {reason}" for name, reason in card.holds.items() if reason is not None]
    share = f"; {card.flops / card.attention_flops:.2f} of attention's"
    lines += [
        f"cost            {scaled(card.parameters)} parameters, {scaled(card.flops)} FLOPs{share}",
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
    return "\n".join(lines)
