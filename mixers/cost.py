"""Exact parameters and FLOPs of an encoder; a pure function of its spec."""

import torch

from mixers.model import Encoder
from mixers.registry import mixer_registry
from mixers.spec import EncoderSpec


def count_parameters(spec: EncoderSpec) -> int:
    """Return the number of weights of the encoder, embeddings included, heads not.

    The encoder is built on the meta device: nothing is allocated.
    """
    with torch.device("meta"):
        encoder = Encoder(spec)
    return sum(parameter.numel() for parameter in encoder.parameters())


def count_flops(spec: EncoderSpec, *, seq_len: int | None = None) -> int:
    """Return FLOPs (2 x MAC) of one forward of one sequence: mixers and feed-forward layers.

    Embedding look-ups, norms, activations and biases cost nothing in this count.

    Args:
        spec: The encoder.
        seq_len: Tokens; by default `max_seq_len`.
    """
    tokens = spec.max_seq_len if seq_len is None else seq_len
    total = 0
    for block in spec.blocks:
        mixer_type = mixer_registry.load(block.mixer.kind)
        total += mixer_type.flops(block.mixer, d_model=spec.d_model, seq_len=tokens)
        total += 4 * tokens * spec.d_model * block.d_ff
    return total
