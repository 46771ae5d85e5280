"""An encoder from a folder that Hugging Face's `save_pretrained` wrote for a BERT model."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from mixers.bert import encoder_from_bert
from mixers.errors import MixerError
from mixers.explain import load
from mixers.model import Encoder
from search.errors import InputError

ValueT = TypeVar("ValueT")

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


class BertFacts(BaseModel):
    """What `config.json` says and no weight does; what is not given is as `BertConfig` has it."""

    model_config = ConfigDict(extra="ignore")

    model_type: Literal["bert"]
    num_attention_heads: int = 12
    hidden_act: Literal["gelu", "relu"] = "gelu"
    layer_norm_eps: float = 1e-12
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False


class ShardIndex(BaseModel):
    """Which file holds which weight, where they lie in several."""

    weight_map: dict[str, str] = Field(min_length=1)


def read_bert(folder: str | Path, *, dropout: float = 0.0) -> Encoder:
    """Return an encoder whose output is the `last_hidden_state` of the BERT model in a folder.

    Reads `config.json` and the weights in safetensors, in one file or several; downloads nothing.

    Args:
        folder: Written by `save_pretrained` of a `BertModel` or of a model that holds one.
        dropout: Rate for training on; see `EncoderSpec`.

    Raises:
        InputError: A file is missing or damaged, or the model is none that an encoder can be.
    """
    home = Path(folder)
    facts = reading(home / "config.json", lambda path: load(BertFacts, path.read_bytes()))
    try:
        return encoder_from_bert(
            read_weights(home),
            n_heads=facts.num_attention_heads,
            activation=facts.hidden_act,
            norm_eps=facts.layer_norm_eps,
            dropout=dropout,
        )
    except MixerError as error:
        raise InputError(f"{home}: {one_line(error)}") from None


def read_weights(home: Path) -> dict[str, Tensor]:
    """Return all weights of a folder.

    Raises:
        InputError: There are none in safetensors, or a file is missing or damaged.
    """
    from safetensors.torch import load_file

    if (home / INDEX).is_file():
        index = reading(home / INDEX, lambda path: load(ShardIndex, path.read_bytes()))
        files = sorted(set(index.weight_map.values()))
    elif (home / ONE_FILE).is_file():
        files = [ONE_FILE]
    else:
        raise InputError(
            f"{home}: no {ONE_FILE}; read the model with transformers and save it here with "
            "save_pretrained"
        )
    weights: dict[str, Tensor] = {}
    for name in files:
        weights |= reading(home / name, load_file)
    return weights


def reading(path: Path, read: Callable[[Path], ValueT]) -> ValueT:
    """Return what a file holds; a file that cannot be read is an `InputError` that names it."""
    from safetensors import SafetensorError

    try:
        return read(path)
    except (OSError, SafetensorError, MixerError) as error:
        raise InputError(f"{path}: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """Return what an error says, without the file's name, in one line."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return "; ".join(said.splitlines())
