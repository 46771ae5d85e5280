"""Small made-up texts and their tokens, quick enough for every test that needs a corpus."""

from pathlib import Path

import numpy as np

from search.data.streams import TokenStream

SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "pa", "ri", "so", "tu")


def words(n: int, seed: int = 0) -> str:
    """Returns n words of one to three syllables, a full stop after every tenth."""
    rng = np.random.default_rng(seed)
    made = ["".join(rng.choice(SYLLABLES, rng.integers(1, 4))) for _ in range(n)]
    return " ".join(word + "." * (i % 10 == 9) for i, word in enumerate(made))


def write_folder(folder: Path, n_documents: int = 30, n_words: int = 300) -> Path:
    """Writes a folder of text files, one document each; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n_documents):
        (folder / f"document{i:02d}.txt").write_text(words(n_words, seed=i), encoding="utf-8")
    return folder


def stream_of(*lengths: int) -> TokenStream:
    """Returns a stream whose token at place t is t, one piece per length."""
    return TokenStream(
        np.arange(sum(lengths), dtype=np.uint32),
        np.cumsum([0, *lengths]),
        np.arange(len(lengths)),
    )
