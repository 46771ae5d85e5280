"""Three splits of a corpus that share no text: train, selection and test."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from search.data.documents import Document

Split = Literal["train", "selection", "test"]
SPLITS: tuple[Split, ...] = ("train", "selection", "test")
Role = Literal["train", "selection", "test", "held_out"]

ENOUGH_DOCUMENTS = 20
"""From here on whole documents go to one split each; with fewer, every document is cut."""
STRIDE = 10
TRAIN_SHARE = 0.8
SMALLEST_SHARE = 0.02


@dataclass(frozen=True)
class Piece:
    """Consecutive text that goes to one split.

    Attributes:
        document: Number of the document; where documents are cut, of the section.
        role: Its split, or "held_out": selection and test text of one section, still to be cut
            apart by `cut_held_out` once it is tokenised.
        text: The text.
    """

    document: int
    role: Role
    text: str


@dataclass(frozen=True)
class SplitPlan:
    """All pieces and the rule that made them: "documents" or "blocks"."""

    rule: Literal["documents", "blocks"]
    pieces: tuple[Piece, ...]


def plan_splits(documents: Sequence[Document], seq_len: int) -> SplitPlan:
    """Split by document, or by contiguous blocks where there are too few documents.

    By document: the 4th of every ten goes to selection and the 9th to test, so both are spread
    over the whole order (for dated texts, over all times). Blocks, with fewer than
    `ENOUGH_DOCUMENTS` documents or where whole documents would leave a split nearly empty: each
    document is cut into sections, and each section into 80 % train, then selection, then test, each
    followed by a gap of `seq_len` tokens that no split uses.
    """
    if len(documents) >= ENOUGH_DOCUMENTS:
        pieces = tuple(Piece(i, role_of(i), document.text) for i, document in enumerate(documents))
        if balanced(pieces):
            return SplitPlan("documents", pieces)
    return SplitPlan("blocks", blocks(documents, seq_len))


def role_of(document: int) -> Split:
    """Return the split of a document by its place in the order."""
    place = document % STRIDE
    return "selection" if place == 3 else "test" if place == 8 else "train"


def balanced(pieces: Sequence[Piece]) -> bool:
    """Whether training has at least half of the text and the other splits 2 % each."""
    size = dict.fromkeys(SPLITS, 0)
    for piece in pieces:
        assert piece.role != "held_out"
        size[piece.role] += len(piece.text)
    total = sum(size.values())
    return size["train"] >= 0.5 * total and all(
        size[split] >= SMALLEST_SHARE * total for split in SPLITS
    )


def blocks(documents: Sequence[Document], seq_len: int) -> tuple[Piece, ...]:
    """Return each section's train piece and the held-out piece that follows it."""
    pieces = []
    section = 0
    for document in documents:
        wanted = math.ceil(ENOUGH_DOCUMENTS / len(documents))
        # A section's fifth must hold three gaps and four windows for each of two splits; four
        # characters a token.
        room = len(document.text) // (5 * 11 * seq_len * 4)
        for text in cut_evenly(document.text, max(1, min(wanted, room))):
            at = next_blank(text, int(TRAIN_SHARE * len(text)))
            pieces.append(Piece(section, "train", text[:at]))
            pieces.append(Piece(section, "held_out", text[at:]))
            section += 1
    return tuple(pieces)


def cut_evenly(text: str, n: int) -> list[str]:
    """Return the text in n consecutive parts of about the same length, cut at white space."""
    cuts = [0, *(next_blank(text, len(text) * i // n) for i in range(1, n)), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


def next_blank(text: str, at: int) -> int:
    """Return the first place from `at` on with white space; `at` if the next 1,000 have none.

    Scripts without blanks between words may be cut anywhere.
    """
    for place in range(at, min(at + 1000, len(text))):
        if text[place].isspace():
            return place
    return at


def cut_held_out(n_tokens: int, gap: int) -> tuple[slice, slice]:
    """Return where selection and test lie in a held-out piece of `n_tokens` tokens.

    The piece is: gap, selection, gap, test, gap. Too short a piece gives empty slices.
    """
    share = max(0, (n_tokens - 3 * gap) // 2)
    test_start = 2 * gap + share
    return slice(gap, gap + share), slice(test_start, test_start + share)
