"""Specs of whole encoders by name: those of Table 1 in Yun et al. 2020, and ModernBERT's order.

The four of Table 1 (arXiv 1912.10077) have the sizes of BERT-base and its form: 12 blocks of width
768, feed-forward layers 3072 wide, LayerNorm after every residual sum and over the summed
embeddings, learned positions, two segments. They differ in the token mixer alone. Dropout is the
.01 of appendix D.

"modernbert" has the mixers and the sizes of ModernBERT-base (Warner et al. 2024, arXiv 2412.13663):
22 layers, every third of global attention, the others with a window of 64 tokens to each side. Its
gated feed-forward layers, 1152 wide, stand as plain ones with as many weights, 1728 wide.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mixers.errors import MixerError
from mixers.layouts import modernbert
from mixers.registry import suggestion
from mixers.spec import EncoderSpec

N_LAYERS = 12
BERT_BASE: dict[str, Any] = {
    "vocab_size": 30_522,
    "d_model": 768,
    "d_ff": 3072,
    "max_seq_len": 512,
    "norm": "post",
    "n_segments": 2,
    "scale_embeddings": False,
    "embedding_norm": True,
    "dropout": 0.01,
    "norm_eps": 1e-12,
}
MODERNBERT_BASE: dict[str, Any] = {
    "vocab_size": 50_368,
    "d_model": 768,
    "d_ff": 1728,
    "max_seq_len": 8192,
    "positions": "none",
    "scale_embeddings": False,
    "embedding_norm": True,
}


@dataclass(frozen=True)
class Preset:
    """What a name stands for.

    Attributes:
        layers: Writes the notation of the mixers; called when it is needed, since it looks them up.
        sizes: Everything else of the spec.
        source: Where it comes from.
    """

    layers: Callable[[], str]
    sizes: dict[str, Any]
    source: str


def of_table_1(layer: str, **changes: int) -> Preset:
    """Return an encoder of Table 1: 12 times one layer, and what differs from `BERT_BASE`."""
    source = "Yun et al. 2020 (arXiv 1912.10077), Table 1 and appendix D"
    return Preset(lambda: f"{layer}*{N_LAYERS}", BERT_BASE | changes, source)


PRESETS: dict[str, Preset] = {
    "average": of_table_1("average"),
    # The paper does not say how long W_P is: 384 tokens give its count, 512 give 91.4 million.
    "bproj": of_table_1("bproj", max_seq_len=384, n_positions=512),
    "sepconv": of_table_1("sepconv(kernel_size=128, n_filters=16)"),
    "bert-base": of_table_1("attention(n_heads=12)"),
    "modernbert": Preset(
        partial(modernbert, 22, n_heads=12),
        MODERNBERT_BASE,
        "Warner et al. 2024 (arXiv 2412.13663): the mixers and sizes of ModernBERT-base",
    ),
}
TABLE_1 = ("average", "bproj", "sepconv", "bert-base")
"""Those of the table, in the order of its columns."""
NAMES = tuple(PRESETS)
"""All presets."""


def preset(name: str) -> EncoderSpec:
    """Return the spec of a preset.

    Args:
        name: One of `NAMES`.

    Raises:
        MixerError: There is no preset of this name.
    """
    if name not in PRESETS:
        raise MixerError(f"unknown preset {name!r}; {suggestion(name, NAMES)}")
    return EncoderSpec.of(PRESETS[name].layers(), **PRESETS[name].sizes)
