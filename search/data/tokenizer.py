"""WordPiece tokenizers: trained on the training split, or given by the user.

They are kept as transformers' `PreTrainedTokenizerFast`, so an exported model finds its own.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
ALPHABET_SHARE = 2
"""A character may need two entries: at the start of a word and, as "##" piece, inside one."""


def train_wordpiece(texts: Iterable[str], vocab_size: int) -> "PreTrainedTokenizerFast":
    """Train BERT's uncased WordPiece (Devlin et al. 2019) on `texts`.

    The ids are put in a fixed order (special tokens, then the pieces sorted), since the trainer
    numbers some pieces by a random hash order; WordPiece's greedy longest match does not depend
    on ids.

    Args:
        texts: Text of the training split only.
        vocab_size: Most entries, special tokens included; little text gives fewer.
    """
    from tokenizers import Tokenizer, models, trainers

    trained = bert_pipeline(Tokenizer(models.WordPiece(unk_token=SPECIAL_TOKENS["unk_token"])))
    specials = list(SPECIAL_TOKENS.values())
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        special_tokens=specials,
        limit_alphabet=max(1, (vocab_size - len(specials)) // ALPHABET_SHARE),
        show_progress=False,
    )
    trained.train_from_iterator(texts, trainer)
    pieces = [*specials, *sorted(set(trained.get_vocab()) - set(specials))]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    model = models.WordPiece(vocabulary, unk_token=SPECIAL_TOKENS["unk_token"])
    return wrap(bert_pipeline(Tokenizer(model)))


def bert_pipeline(tokenizer: "Tokenizer") -> "Tokenizer":
    """Give a tokenizer BERT's uncased text cleaning, word splitting and decoder; returns it."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def wrap(tokenizer: "Tokenizer") -> "PreTrainedTokenizerFast":
    """Return a `tokenizers` object as transformers' class, with the special tokens it has."""
    from transformers import PreTrainedTokenizerFast

    vocabulary = tokenizer.get_vocab()
    roberta = {name: f"<{name.removesuffix('_token')}>" for name in SPECIAL_TOKENS}
    names = {
        name: next(t for t in (token, roberta[name]) if t in vocabulary)
        for name, token in SPECIAL_TOKENS.items()
        if token in vocabulary or roberta[name] in vocabulary
    }
    fast: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, **names
    )
    return fast


def load_tokenizer(source: str) -> "PreTrainedTokenizerFast":
    """Load a tokenizer from a folder, a `tokenizer.json`, or a Hub id.

    Raises:
        InputError: It cannot be read, is not a fast tokenizer, or has no mask token.
    """
    path = Path(source).expanduser()
    tokenizer: PreTrainedTokenizerFast
    try:
        tokenizer = read_tokenizer(path) if path.exists() else read_hub_tokenizer(source)
    except InputError:
        raise
    except Exception as error:  # transformers and tokenizers raise whatever their parsers do
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"tokenizer {source!r} cannot be read: {reason}; give a folder made by "
            "save_pretrained, a tokenizer.json or a Hugging Face id"
        ) from None
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(f"tokenizer {source!r} has no fast version (tokenizer.json)")
    if tokenizer.mask_token_id is None:
        raise InputError(
            f"tokenizer {source!r} has no mask token; masked language modelling needs one"
        )
    return tokenizer


def read_tokenizer(path: Path) -> Any:
    """Load a tokenizer from disk."""
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    if path.is_file():
        return wrap(Tokenizer.from_file(str(path)))
    if not (path / "tokenizer_config.json").exists() and (path / "tokenizer.json").exists():
        return wrap(Tokenizer.from_file(str(path / "tokenizer.json")))
    return AutoTokenizer.from_pretrained(str(path), local_files_only=True)


def read_hub_tokenizer(source: str) -> Any:
    """Load a tokenizer from the Hub, or from the Hub's own cache when there is no network."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
    from transformers import AutoTokenizer

    from search.data.hub import TIMEOUT_S

    try:
        HfApi().model_info(source, timeout=TIMEOUT_S)
    except (RepositoryNotFoundError, HFValidationError):
        raise InputError(
            f"tokenizer {source!r}: neither a file or folder here nor a model on the Hugging Face "
            "Hub; give a folder made by save_pretrained or a tokenizer.json"
        ) from None
    except Exception:  # any network failure of whatever HTTP library is underneath
        try:
            return AutoTokenizer.from_pretrained(source, local_files_only=True)
        except (OSError, ValueError):
            raise InputError(
                f"tokenizer {source!r}: no such file or folder here, and the Hugging Face Hub "
                "cannot be reached; give a folder made by save_pretrained or a tokenizer.json"
            ) from None
    return AutoTokenizer.from_pretrained(source)


def tokenizer_hash(tokenizer: "PreTrainedTokenizerFast") -> str:
    """Return the sha256 of what a tokenizer does: its pipeline, vocabulary and special tokens."""
    import hashlib

    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content["special"] = tokenizer.special_tokens_map
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def vocabulary_size(source: str) -> int:
    """Return the number of ids of a user's tokenizer: what `vocab_size` must be at least.

    Raises:
        InputError: It cannot be read.
    """
    return max(load_tokenizer(source).get_vocab().values()) + 1
