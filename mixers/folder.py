"""An encoder as a folder: its spec and its weights."""

import json
from pathlib import Path

from mixers.config import canonical_json
from mixers.errors import MixerError
from mixers.explain import load as load_document
from mixers.model import Encoder
from mixers.spec import EncoderSpec

SPEC = "spec.json"
WEIGHTS = "model.safetensors"


def save(encoder: Encoder, folder: str | Path) -> None:
    """Write `spec.json` and `model.safetensors`, in the weights' own precision.

    Args:
        encoder: The encoder; what `torch.compile` made of one is saved as the one inside it.
        folder: Where to; made if it does not exist.

    Raises:
        OSError: The folder cannot be written.
    """
    from safetensors.torch import save_file

    encoder = getattr(encoder, "_orig_mod", encoder)
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / SPEC).write_text(canonical_json(encoder.spec) + "\n", encoding="utf-8")
    weights = {name: weight.contiguous() for name, weight in encoder.state_dict().items()}
    save_file(weights, path / WEIGHTS)


def load(folder: str | Path) -> Encoder:
    """Rebuild the encoder of a folder, with the weights and the precision it was saved with.

    Raises:
        MixerError: A file is missing or damaged, or the weights are not those of the spec.
        SpecError: `spec.json` is no valid spec.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(folder)
    try:
        document = json.loads((path / SPEC).read_text(encoding="utf-8"))
        weights = load_file(path / WEIGHTS)
    except FileNotFoundError as error:
        raise MixerError(
            f"{path}: no {Path(str(error.filename or WEIGHTS)).name}; a saved encoder has "
            f"{SPEC} and {WEIGHTS}"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError, SafetensorError) as error:
        raise MixerError(f"{path}: damaged: {error}; save the encoder again") from None
    encoder = Encoder(load_document(EncoderSpec, document))
    types = {weight.dtype for weight in weights.values()}
    try:
        if len(types) == 1:
            encoder.to(types.pop())
        encoder.load_state_dict(weights)
    except RuntimeError as error:
        words = " ".join(str(error).split())
        raise MixerError(f"{path}: {WEIGHTS} does not belong to {SPEC}: {words}") from None
    return encoder
