"""`search mixers table1`: parameters of the paper's four encoders, beside the paper's figures."""

from typing import TYPE_CHECKING, Any

from search.cli.options import JsonOption
from search.cli.output import LEFT, RIGHT, print_json, table, write

if TYPE_CHECKING:
    from torch import nn

    from mixers import EncoderSpec

PAPER = {"average": "88.3", "bproj": "90", "sepconv": "102.5", "bert-base": "110"}
"""Millions of parameters by preset, with the digits that Table 1 of the paper prints."""

NEXT_SENTENCE = 2
"""Classes of next-sentence prediction."""


def table_1(json: JsonOption = False) -> None:
    """Count the parameters of the presets of Table 1 (Yun et al. 2020), and compare.

    The encoders average, bproj, sepconv and bert-base with BERT's two pre-training heads (masked
    tokens, tied, and next sentence; no pooler). Nothing is allocated. Ends with code 1 unless
    every total equals the paper's, rounded to its digits.
    """
    from mixers.presets import TABLE_1, preset
    from search.errors import RunFailedError

    counts = {name: count_parts(preset(name)) for name in TABLE_1}
    totals = {name: sum(parts.values()) for name, parts in counts.items()}
    differing = [name for name in TABLE_1 if rounded_as(PAPER[name], totals[name]) != PAPER[name]]
    if json:
        print_json(
            {
                name: {
                    "notation": preset(name).notation,
                    "parts": counts[name],
                    "total": totals[name],
                    "paper_millions": PAPER[name],
                    "equal": name not in differing,
                }
                for name in TABLE_1
            }
        )
    else:
        write(text(counts))
    if differing:
        raise RunFailedError(
            "; ".join(
                f"{name}: {totals[name]:,} parameters are not the paper's {PAPER[name]} M"
                for name in differing
            )
        )


def count_parts(spec: "EncoderSpec") -> dict[str, int]:
    """Return the parameters of a pre-training model by part, counted on its modules.

    Args:
        spec: An encoder of BERT's form.

    Returns:
        Number of parameters of each part; together they are the whole model's.
    """
    import torch
    from torch import nn

    from mixers import Encoder
    from search.tasks.prediction_model import BertHead

    with torch.device("meta"):
        encoder = Encoder(spec)
        masked = BertHead(spec.d_model, spec.vocab_size, spec.norm_eps)
        following = nn.Linear(spec.d_model, NEXT_SENTENCE)
    blocks: Any = encoder.blocks
    parts = {
        "token embeddings": size(encoder.token_embedding),
        "position embeddings": size(encoder.position_embedding),
        "segment embeddings": size(encoder.segment_embedding),
        "norm of embeddings": size(encoder.embedding_norm),
        "mixers": sum(size(block.mixer) for block in blocks),
        "feed-forward": sum(size(block.feed_forward) for block in blocks),
        "norms of blocks": sum(
            size(block.mixer_norm) + size(block.feed_forward_norm) for block in blocks
        ),
        "masked-token head": size(masked),
        "next-sentence head": size(following),
    }
    assert sum(parts.values()) == size(encoder) + size(masked) + size(following)
    return parts


def size(module: "nn.Module | None") -> int:
    """Return the number of parameters; 0 for a part that the encoder does not have."""
    return 0 if module is None else sum(weight.numel() for weight in module.parameters())


def rounded_as(figure: str, parameters: int) -> str:
    """Return millions with as many decimals as a printed figure has, a half away from zero."""
    from decimal import ROUND_HALF_UP, Decimal

    return str((Decimal(parameters) / 10**6).quantize(Decimal(figure), rounding=ROUND_HALF_UP))


def text(counts: dict[str, dict[str, int]]) -> str:
    """The parts, the totals and the paper's figures as a table."""
    names = list(counts)
    totals = {name: sum(parts.values()) for name, parts in counts.items()}
    rows = [(part, *(f"{counts[name][part]:,}" for name in names)) for part in counts[names[0]]]
    rows += [
        ("total", *(f"{totals[name]:,}" for name in names)),
        ("in millions", *(f"{totals[name] / 10**6:.3f}" for name in names)),
        ("rounded", *(rounded_as(PAPER[name], totals[name]) for name in names)),
        ("paper", *(PAPER[name] for name in names)),
    ]
    return table((("parameters", LEFT), *((name, RIGHT) for name in names)), rows)
