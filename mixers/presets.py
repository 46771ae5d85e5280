"""The four encoders of Table 1 in Yun et al. 2020 (arXiv 1912.10077), as specs.

All have the sizes of BERT-base and its form: 12 blocks of width 768, feed-forward layers 3072 wide,
LayerNorm after every residual sum and over the summed embeddings, learned positions, two segments.
They differ in the token mixer alone. Dropout is the .01 of appendix D.
"""

from typing import Any

from mixers.errors import MixerError
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

LAYERS: dict[str, tuple[str, dict[str, int]]] = {
    "average": ("average", {}),
    # The paper does not say how long W_P is: 384 tokens give its count, 512 give 91.4 million.
    "bproj": ("bproj", {"max_seq_len": 384, "n_positions": 512}),
    "sepconv": ("sepconv(kernel_size=128, n_filters=16)", {}),
    "bert-base": ("attention(n_heads=12)", {}),
}
"""For each preset, the notation of one layer and what differs from `BERT_BASE`."""

NAMES = tuple(LAYERS)
"""The presets, in the order of the table's columns."""


def preset(name: str) -> EncoderSpec:
    """Return the spec of a preset.

    Args:
        name: One of `NAMES`.

    Raises:
        MixerError: There is no preset of this name.
    """
    if name not in LAYERS:
        raise MixerError(f"unknown preset {name!r}; {suggestion(name, NAMES)}")
    layer, changes = LAYERS[name]
    return EncoderSpec.of(f"{layer}*{N_LAYERS}", **BERT_BASE | changes)
