import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import words

from search.data.documents import Document
from search.data.splits import SPLITS, blocks, cut_held_out, plan_splits


def documents(n: int, n_words: int = 300) -> list[Document]:
    return [Document(str(i), words(n_words, seed=i)) for i in range(n)]


def test__plan_splits__many_documents__whole_and_spread_over_the_order() -> None:
    plan = plan_splits(documents(250, n_words=20), seq_len=8)
    assert plan.rule == "documents"
    held = {split: [p.document for p in plan.pieces if p.role == split] for split in SPLITS}
    assert [len(held[split]) for split in SPLITS] == [200, 25, 25]
    assert sorted(itertools.chain(*held.values())) == list(range(250))
    for split in ("selection", "test"):
        assert np.diff(held[split]).max() == 10


def test__plan_splits__one_long_file__sections_with_all_parts_in_order() -> None:
    text = words(20_000)
    plan = plan_splits([Document("f", text)], seq_len=16)
    assert plan.rule == "blocks"
    assert "".join(piece.text for piece in plan.pieces) == text
    assert [piece.role for piece in plan.pieces] == ["train", "held_out"] * 20
    train = sum(len(piece.text) for piece in plan.pieces if piece.role == "train")
    assert train / len(text) == pytest.approx(0.8, abs=0.01)


def test__plan_splits__one_giant_among_many__blocks() -> None:
    # The giant would leave nothing for the other splits.
    texts = documents(25, n_words=20)
    texts[0] = Document("giant", words(30_000))
    assert plan_splits(texts, seq_len=8).rule == "blocks"


def test__blocks__cuts__only_at_white_space() -> None:
    text = words(5_000)
    pieces = blocks([Document("f", text)], seq_len=16)
    assert " ".join(piece.text for piece in pieces).split() == text.split()


def test__blocks__script_without_blanks__still_cut() -> None:
    pieces = blocks([Document("f", "\u6587" * 50_000)], seq_len=16)
    assert len(pieces) == 28
    assert "".join(piece.text for piece in pieces) == "\u6587" * 50_000


@given(n_tokens=st.integers(0, 10_000), gap=st.integers(1, 600))
def test__cut_held_out__any_size__gaps_around_equal_parts(n_tokens: int, gap: int) -> None:
    selection, test = cut_held_out(n_tokens, gap)
    assert selection.start >= gap
    assert test.start - selection.stop >= gap
    size = selection.stop - selection.start
    assert size == test.stop - test.start == max(0, (n_tokens - 3 * gap) // 2)
    if size:
        assert n_tokens - test.stop >= gap
