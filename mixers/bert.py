"""Weights of Hugging Face's BERT, by name, into an encoder of ours that gives the same output.

Devlin et al. 2019 (arXiv 1810.04805). The names are those of `transformers.BertModel`'s state dict:
`embeddings.word_embeddings.weight`, `encoder.layer.0.attention.self.query.weight` and so on. Also
understood: the model inside one with heads (`bert.`), what wrapping leaves behind (`module.`,
`_orig_mod.`), and `LayerNorm.gamma`, `LayerNorm.beta` of older checkpoints. Heads and the pooler
are left aside. Every other name that is not expected, missing or of another shape is an error.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from mixers.builtin.attention import Attention
from mixers.errors import MixerError
from mixers.explain import load
from mixers.model import Encoder
from mixers.spec import EncoderSpec

Weights = Mapping[str, Tensor]
Stacks = Mapping[str, tuple[str, ...]]
"""For each of our modules, the modules of BERT whose rows it stacks."""

TOKENS = "embeddings.word_embeddings.weight"
POSITIONS = "embeddings.position_embeddings.weight"
SEGMENTS = "embeddings.token_type_embeddings.weight"
WIDE = "encoder.layer.0.intermediate.dense.weight"
LAYER = re.compile(r"encoder\.layer\.(\d+)\.")
LEFT_ASIDE = ("pooler.", "cls.", "classifier.", "qa_outputs.", "embeddings.position_ids")
MOST_NAMED = 6
"""Names in a message for each kind of problem."""

ATTENTION: Stacks = {
    "qkv": ("self.query", "self.key", "self.value"),
    "out": ("output.dense",),
}
BLOCK: Stacks = {
    "mixer.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "mixer.out": ("attention.output.dense",),
    "mixer_norm": ("attention.output.LayerNorm",),
    "feed_forward.wide": ("intermediate.dense",),
    "feed_forward.narrow": ("output.dense",),
    "feed_forward_norm": ("output.LayerNorm",),
}
EMBEDDINGS: Stacks = {
    "token_embedding": ("embeddings.word_embeddings",),
    "position_embedding": ("embeddings.position_embeddings",),
    "segment_embedding": ("embeddings.token_type_embeddings",),
    "embedding_norm": ("embeddings.LayerNorm",),
}


def encoder_from_bert(
    weights: Weights,
    *,
    n_heads: int,
    activation: Literal["gelu", "relu"] = "gelu",
    norm_eps: float = 1e-12,
    dropout: float = 0.0,
) -> Encoder:
    """Return an encoder with a BERT model's weights, whose output is its `last_hidden_state`.

    Sizes are read from the weights; number type and device are those of the token embeddings. The
    tensors are copied.

    Args:
        weights: State dict of a `BertModel`, or of a model that holds one as `bert`.
        n_heads: `num_attention_heads` of its config; no weight tells it.
        activation: `hidden_act` of its config; "gelu" is the exact one.
        norm_eps: `layer_norm_eps` of its config.
        dropout: Rate for training on; see `EncoderSpec`.

    Raises:
        MixerError: Names are missing, unexpected, doubled or of the wrong shape; the text has them.
        SpecError: The sizes and `n_heads` do not fit.
    """
    found = canonical_names(weights)
    refuse_untold_sizes(found)
    n_layers = len({at[1] for at in map(LAYER.match, found) if at is not None})
    vocab_size, d_model = found[TOKENS].shape
    layer = {"kind": "attention", "n_heads": n_heads}
    block = {"mixer": layer, "d_ff": len(found[WIDE]), "activation": activation}
    one_block = load(
        EncoderSpec,
        {
            "vocab_size": vocab_size,
            "d_model": d_model,
            "max_seq_len": len(found[POSITIONS]),
            "n_segments": len(found[SEGMENTS]),
            "norm": "post",
            "scale_embeddings": False,
            "embedding_norm": True,
            "norm_eps": norm_eps,
            "dropout": dropout,
            "blocks": [block],  # what does not fit is said once, not once a layer
        },
    )
    spec = load(EncoderSpec, one_block.model_dump() | {"blocks": [block] * n_layers})
    with torch.device("meta"):
        encoder = Encoder(spec)
    sources = sources_of(encoder, encoder_stacks(n_layers))
    refuse_problems(found, encoder, sources)
    encoder.to(found[TOKENS].dtype).to_empty(device=found[TOKENS].device)
    copy(found, encoder, sources)
    return encoder


def load_attention(mixer: Attention, weights: Weights) -> None:
    """Copy the projections of one BERT attention layer into an attention mixer, in place.

    The mixer's update is then what the layer adds to its input before the LayerNorm.

    Args:
        mixer: Of the width of the weights. The number of heads is its own; no weight tells it.
        weights: State dict of a `transformers` `BertAttention`: `self.query`, `self.key`,
            `self.value` and `output.dense`. `output.LayerNorm` belongs to the block and is left
            aside.

    Raises:
        MixerError: Names are missing, unexpected or of the wrong shape; the text has them.
    """
    found = {
        name: tensor for name, tensor in weights.items() if not name.startswith("output.LayerNorm.")
    }
    sources = sources_of(mixer, ATTENTION)
    refuse_problems(found, mixer, sources)
    copy(found, mixer, sources)


def canonical_names(weights: Weights) -> dict[str, Tensor]:
    """Return the weights under the names of today's `BertModel`, without heads and pooler.

    Raises:
        MixerError: Two names say the same.
    """
    found: dict[str, Tensor] = {}
    origin: dict[str, str] = {}
    for name, tensor in weights.items():
        short = name.replace("_orig_mod.", "").removeprefix("module.").removeprefix("bert.")
        if short.startswith(LEFT_ASIDE):
            continue
        short = short.replace("LayerNorm.gamma", "LayerNorm.weight")
        short = short.replace("LayerNorm.beta", "LayerNorm.bias")
        if short in found:
            raise MixerError(f"BERT weights: {origin[short]} and {name} name the same weight")
        found[short], origin[short] = tensor, name
    return found


def refuse_untold_sizes(found: Weights) -> None:
    """Raise if a weight that tells a size of the encoder is missing or no matrix."""
    telling = (TOKENS, POSITIONS, SEGMENTS, WIDE)
    missing = [name for name in telling if name not in found]
    shapes = {name: tuple(found[name].shape) for name in telling if name in found}
    flat = [f"{name} is {shape}, not a matrix" for name, shape in shapes.items() if len(shape) != 2]
    refuse(missing=missing, of_wrong_form=flat)


def encoder_stacks(n_layers: int) -> Stacks:
    """Return the stacks of a whole encoder."""
    blocks = {
        f"blocks.{i}.{ours}": tuple(f"encoder.layer.{i}.{name}" for name in theirs)
        for i in range(n_layers)
        for ours, theirs in BLOCK.items()
    }
    return {**EMBEDDINGS, **blocks}


def sources_of(module: nn.Module, stacks: Stacks) -> dict[str, tuple[str, ...]]:
    """Return, for each weight of ours, the names of the weights whose rows it stacks."""
    sources = {}
    for name in module.state_dict():
        owner, _, leaf = name.rpartition(".")
        sources[name] = tuple(f"{theirs}.{leaf}" for theirs in stacks[owner])
    return sources


def refuse_problems(
    found: Weights, module: nn.Module, sources: Mapping[str, tuple[str, ...]]
) -> None:
    """Raise unless the weights are exactly those that the module needs."""
    shapes = {}
    for ours, tensor in module.state_dict().items():
        rows, *rest = tensor.shape
        for theirs in sources[ours]:
            shapes[theirs] = (rows // len(sources[ours]), *rest)
    wrong = [
        f"{name} is {tuple(found[name].shape)}, expected {shape}"
        for name, shape in shapes.items()
        if name in found and tuple(found[name].shape) != shape
    ]
    wrong += [
        f"{name} holds {tensor.dtype}, expected real numbers"
        for name, tensor in found.items()
        if name in shapes and not tensor.is_floating_point()
    ]
    refuse(
        missing=[name for name in shapes if name not in found],
        unexpected=[name for name in found if name not in shapes],
        of_wrong_form=wrong,
    )


def refuse(**problems: Iterable[str]) -> None:
    """Raise one line that names the weights of each kind of problem, if there are any."""
    parts = []
    for kind, every in problems.items():
        names = list(every)
        if not names:
            continue
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        shown = ", ".join(names[:MOST_NAMED])
        parts.append(f"{len(names)} {kind.replace('_', ' ')}: {shown}{more}")
    if parts:
        raise MixerError(
            f"BERT weights do not fit: {'; '.join(parts)}; give the whole state dict of a BertModel"
        )


def copy(found: Weights, module: nn.Module, sources: Mapping[str, tuple[str, ...]]) -> None:
    """Copy the weights into the module."""
    module.load_state_dict(
        {ours: torch.cat([found[name] for name in names]) for ours, names in sources.items()}
    )
