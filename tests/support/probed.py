"""Networks and contexts for tests of the probe."""

import torch
from torch import Tensor

from mixers import BlockSpec, Encoder, EncoderSpec, parse_architecture

VOCABULARY = torch.arange(100)


def encoder_of(architecture: str, *, d_ff: int = 0, seed: int = 0, **fields: object) -> Encoder:
    """A random encoder without norms, with tokens and positions of one scale.

    By default it has no feed-forward layers.
    """
    sizes = {"vocab_size": 100, "d_model": 64, "max_seq_len": 32, "norm": "none"} | fields
    sizes = {"scale_embeddings": False} | sizes
    blocks = [
        BlockSpec(mixer=mixer, d_ff=d_ff, activation="relu")
        for mixer in parse_architecture(architecture)
    ]
    torch.manual_seed(seed)
    return Encoder(EncoderSpec(blocks=blocks, **sizes))


def random_contexts(n: int = 48, seq_len: int = 32, seed: int = 0) -> Tensor:
    """Uniform random token ids, (n, seq_len)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(100, (n, seq_len), generator=generator)
