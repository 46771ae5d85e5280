"""From a `DataSpec` to tokenised splits, through the cache."""

import functools
import hashlib
import inspect
import json
from pathlib import Path
from typing import Any

import search.data.documents
import search.data.splits
import search.data.streams
import search.data.tokenizer
from search.data.cache import cached, source_version
from search.data.documents import Corpus
from search.data.load import load_corpus
from search.data.spec import DataSpec
from search.data.splits import SPLITS, plan_splits
from search.data.streams import TokenisedCorpus, load_streams, save_streams, tokenise
from search.data.tokenizer import load_tokenizer, tokenizer_hash, train_wordpiece
from search.errors import InputError


def prepare_corpus(
    data: DataSpec, *, tokenizer: str | None, vocab_size: int, seq_len: int, cache_dir: Path
) -> TokenisedCorpus:
    """Return the tokenised splits of a source, from the cache if they are there.

    The cache entry is named by the texts themselves, the tokenizer, the sizes, the code that made
    it and the version of `tokenizers`; a changed file is a different entry.

    Args:
        data: The source.
        tokenizer: A tokenizer to use, or None to train a WordPiece on the training split.
        vocab_size: Entries of the trained tokenizer; most entries of a given one.
        seq_len: Tokens in a window; also the gap between blocks.
        cache_dir: The cache folder.

    Raises:
        InputError: The data is missing, unreadable or too little; the tokenizer cannot be read or
            is larger than `vocab_size`.
    """
    corpus = load_corpus(data, cache_dir)
    parts = [corpus.sha256, given_hash(tokenizer), vocab_size, seq_len, code_version()]
    name = "text-" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
    build = functools.partial(
        build_entry, corpus, tokenizer=tokenizer, vocab_size=vocab_size, seq_len=seq_len
    )
    tokenised = cached(cache_dir, name, build, load_streams)
    # The same texts may come from elsewhere next time, so their origin is no part of the entry.
    tokenised.facts.update(source=corpus.source, n_dropped=corpus.n_dropped)
    return tokenised


def given_hash(tokenizer: str | None) -> str | None:
    """Return what tells a given tokenizer from others: the bytes of its files, or its id."""
    if tokenizer is None:
        return None
    path = Path(tokenizer).expanduser()
    if not path.exists():
        return f"id:{tokenizer}"
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    try:
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    except OSError as error:
        raise InputError(
            f"tokenizer {tokenizer!r} cannot be read: {error.strerror or error}"
        ) from None


@functools.cache
def code_version() -> str:
    """Return a hash over the code that decides what an entry holds."""
    import tokenizers

    modules = (
        search.data.documents,
        search.data.splits,
        search.data.streams,
        search.data.tokenizer,
    )
    files = [inspect.getfile(module) for module in modules]
    return f"{source_version(*files, __file__)}:{tokenizers.__version__}"


def build_entry(
    corpus: Corpus, folder: Path, *, tokenizer: str | None, vocab_size: int, seq_len: int
) -> None:
    """Split, train or load the tokenizer, tokenise, and write it all to `folder`.

    Raises:
        InputError: Too little text, or the tokenizer does not fit.
    """
    plan = plan_splits(corpus.documents, seq_len)
    if tokenizer is None:
        train_texts = (piece.text for piece in plan.pieces if piece.role == "train")
        fast = train_wordpiece(train_texts, vocab_size)
    else:
        fast = load_tokenizer(tokenizer)
    size = max(fast.get_vocab().values()) + 1
    if size > vocab_size:
        raise InputError(
            f"task.vocab_size: {vocab_size} is less than the {size} entries of tokenizer "
            f"{tokenizer!r}; set vocab_size to {size}"
        )
    streams = tokenise(plan, fast, gap=seq_len)
    n_tokens = {split: len(streams[split].tokens) for split in SPLITS}
    if min(n_tokens.values()) < seq_len:
        counts = ", ".join(f"{split} {n}" for split, n in n_tokens.items())
        raise InputError(
            f"{corpus.source}: too little text for three splits of at least {seq_len} tokens each "
            f"(tokens: {counts}); give more text or a smaller seq_len"
        )
    fast.save_pretrained(folder / "tokenizer")
    facts: dict[str, Any] = {
        "rule": plan.rule,
        "vocabulary": len(fast.get_vocab()),
        "special_ids": sorted(fast.all_special_ids),
        "pad_id": fast.pad_token_id if fast.pad_token_id is not None else 0,
        "mask_id": fast.mask_token_id,
        "unk_id": fast.unk_token_id if fast.unk_token_id is not None else -1,
        "tokenizer_sha256": tokenizer_hash(fast),
    }
    save_streams(folder, streams, facts)
