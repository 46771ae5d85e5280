"""Tokenised splits: one flat array of ids per split, with the places where pieces end."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from search.data.splits import SPLITS, Piece, Split, SplitPlan, cut_held_out

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Ids = NDArray[np.unsignedinteger[Any]]
Longs = NDArray[np.int64]

CHUNK_CHARS = 2_000_000


@dataclass(frozen=True)
class TokenStream:
    """The tokens of one split.

    Attributes:
        tokens: All ids, piece after piece, (T,) uint16 or uint32.
        offsets: Piece i is `tokens[offsets[i]:offsets[i + 1]]`, (P + 1,).
        documents: Document (or section) number of each piece, (P,).
    """

    tokens: Ids
    offsets: Longs
    documents: Longs

    @property
    def lengths(self) -> Longs:
        """Tokens of each piece, (P,)."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class TokenisedCorpus:
    """The three splits and what the tokenizer says about its ids.

    Attributes:
        streams: One stream per split.
        facts: JSON facts: rule, source, documents, vocabulary, special ids, tokenizer hash.
        folder: Where the tokenizer is saved (`PreTrainedTokenizerFast.save_pretrained`).
    """

    streams: dict[Split, TokenStream]
    facts: dict[str, Any]
    folder: Path


def tokenise(
    plan: SplitPlan, tokenizer: "PreTrainedTokenizerFast", gap: int
) -> dict[Split, TokenStream]:
    """Tokenise every piece without adding special tokens; empty pieces are left out.

    Args:
        plan: The pieces.
        tokenizer: A fast tokenizer.
        gap: Tokens to drop around held-out blocks (see `cut_held_out`).
    """
    size = max(tokenizer.get_vocab().values()) + 1
    dtype = np.uint16 if size <= 2**16 else np.uint32
    found: dict[Split, list[tuple[int, Ids]]] = {split: [] for split in SPLITS}
    for piece, ids in zip(plan.pieces, encode(plan.pieces, tokenizer, dtype), strict=True):
        if piece.role != "held_out":
            found[piece.role].append((piece.document, ids))
            continue
        selection, test = cut_held_out(len(ids), gap)
        found["selection"].append((piece.document, ids[selection]))
        found["test"].append((piece.document, ids[test]))
    return {split: join(parts, dtype) for split, parts in found.items()}


def encode(
    pieces: Sequence[Piece], tokenizer: "PreTrainedTokenizerFast", dtype: type
) -> Iterator[Ids]:
    """Yield the ids of each piece, tokenising some megabytes of text at a time."""
    backend = tokenizer.backend_tokenizer
    # A tokenizer saved with truncation or padding would cut documents off.
    backend.no_truncation()
    backend.no_padding()
    start = 0
    while start < len(pieces):
        sizes = itertools.accumulate(len(piece.text) for piece in pieces[start:])
        count = 1 + sum(1 for _ in itertools.takewhile(lambda size: size < CHUNK_CHARS, sizes))
        texts = [piece.text for piece in pieces[start : start + count]]
        for encoding in backend.encode_batch_fast(texts, add_special_tokens=False):
            yield np.asarray(encoding.ids, dtype=dtype)
        start += count


def join(parts: Sequence[tuple[int, Ids]], dtype: type) -> TokenStream:
    """Return the stream of all non-empty parts, given as (document, ids)."""
    parts = [(document, ids) for document, ids in parts if len(ids)]
    tokens = np.concatenate([np.empty(0, dtype), *(ids for _, ids in parts)])
    lengths = np.array([0, *(len(ids) for _, ids in parts)], dtype=np.int64)
    documents = np.array([document for document, _ in parts], dtype=np.int64)
    return TokenStream(tokens, np.cumsum(lengths), documents)


def save_streams(folder: Path, streams: dict[Split, TokenStream], facts: dict[str, Any]) -> None:
    """Write the streams as npy files and the facts as JSON."""
    for split, stream in streams.items():
        for name in ("tokens", "offsets", "documents"):
            np.save(folder / f"{split}.{name}.npy", getattr(stream, name), allow_pickle=False)
    (folder / "facts.json").write_text(json.dumps(facts, sort_keys=True), encoding="utf-8")


def load_streams(folder: Path) -> TokenisedCorpus:
    """Read what `save_streams` wrote."""
    streams = {
        split: TokenStream(
            *(
                np.load(folder / f"{split}.{name}.npy", allow_pickle=False)
                for name in ("tokens", "offsets", "documents")
            )
        )
        for split in SPLITS
    }
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return TokenisedCorpus(streams, facts, folder / "tokenizer")
