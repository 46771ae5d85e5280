import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from search.probe import ProbeError
from search.probe.strata import STRATA, Pairs, draw

VOCABULARY = torch.tensor([9, 3, 5, 7, 11, 13])


def pairs_of(stratum: str, seed: int = 0, n: int = 12, n_real: int | None = None) -> tuple:
    generator = torch.Generator().manual_seed(seed)
    bases = VOCABULARY[torch.randint(len(VOCABULARY), (5, n), generator=generator)]
    mask = (torch.arange(n) < (n if n_real is None else n_real)).expand(5, n)
    pairs = draw(stratum, bases, mask, VOCABULARY, n_variants=6, seed=seed, d_model=8)
    return bases, mask, pairs


@given(st.sampled_from(STRATA), st.integers(0, 1000), st.integers(2, 12))
def test__draw__any_stratum__edits_real_tokens_only_and_marks_what_differs(stratum, seed, n_real):
    bases, mask, pairs = pairs_of(stratum, seed, n_real=n_real)

    differs = pairs.tokens != bases[:, None]
    if pairs.push is None:
        assert torch.equal(differs, pairs.edited)
        assert set(pairs.tokens[differs].tolist()) <= set(VOCABULARY.tolist())
    else:
        assert not differs.any()
        assert torch.equal(pairs.push != 0, pairs.edited)
        assert not pairs.push.sum(-1).any()
    assert not (pairs.edited & ~mask[:, None]).any()
    count = pairs.edited.sum(-1)
    expected = {
        "one_edit": 1,
        "four_edits": min(4, n_real),
        "half_edits": n_real // 2,
        "transposition": 2,
        "mean_preserving": 2,
    }[stratum]
    possible = stratum != "transposition" or (bases[:, :n_real] != bases[:, :1]).any(-1)
    assert torch.equal(count, torch.as_tensor(expected * possible).view(-1, 1).expand(5, 6))
    if stratum == "transposition":
        assert torch.equal(
            pairs.tokens.sort(-1).values, bases[:, None].sort(-1).values.expand(5, 6, -1)
        )


def test__draw__one_edit__positions_and_tokens_are_uniform():
    n, vocabulary = 8, torch.arange(4)
    bases = torch.zeros(1, n, dtype=torch.int64)
    pairs = draw("one_edit", bases, bases == 0, vocabulary, n_variants=8000, seed=1, d_model=1)

    positions = pairs.edited[0].sum(0)
    tokens = torch.bincount(pairs.tokens[pairs.edited])
    # 4.5 standard deviations of a binomial share.
    assert (positions - 1000).abs().max() < 4.5 * (8000 * 1 / 8 * 7 / 8) ** 0.5
    assert tokens[0] == 0
    assert (tokens[1:] - 8000 / 3).abs().max() < 4.5 * (8000 * 1 / 3 * 2 / 3) ** 0.5


def test__draw__transposition__is_uniform_over_the_pairs_that_differ():
    bases = torch.tensor([[1, 2, 3, 3]])
    pairs = draw("transposition", bases, bases > 0, VOCABULARY, n_variants=5000, seed=2, d_model=1)

    swaps, counts = pairs.edited[0].int().unique(dim=0, return_counts=True)

    assert len(swaps) == 5  # all but the two equal tokens
    assert (counts - 1000).abs().max() < 4.5 * (5000 * 1 / 5 * 4 / 5) ** 0.5


def test__draw__same_seed__same_pairs_and_other_seed_others():
    for stratum in STRATA:
        first, again, other = (pairs_of(stratum, s)[2] for s in (3, 3, 4))
        assert torch.equal(first.tokens, again.tokens)
        assert torch.equal(first.edited, again.edited)
        assert not torch.equal(first.edited, other.edited)


def test__draw__tokens_outside_the_vocabulary__are_replaced_too():
    bases = torch.full((3, 6), 1)

    pairs = draw("half_edits", bases, bases > 0, VOCABULARY, n_variants=4, seed=0, d_model=1)

    assert (pairs.edited.sum(-1) == 3).all()


def test__draw__one_token_vocabulary__refused():
    bases = torch.zeros(2, 4, dtype=torch.int64)
    with pytest.raises(ProbeError, match="at least 2 token ids"):
        draw("one_edit", bases, bases == 0, torch.tensor([5, 5]), n_variants=1, seed=0, d_model=1)


def test__draw__nothing_to_swap__no_position_counts_as_edited():
    bases = torch.full((2, 4), 5)

    pairs = draw("transposition", bases, bases > 0, VOCABULARY, n_variants=3, seed=0, d_model=1)

    assert not pairs.edited.any()


def test__distance__nearest_edit__equals_brute_force():
    _, _, pairs = pairs_of("four_edits", n=15)

    found = pairs.distance()

    for b, v in np.ndindex(5, 6):
        places = np.flatnonzero(pairs.edited[b, v].numpy())
        expected = [min(abs(j - p) for p in places) for j in range(15)]
        assert found[b, v].tolist() == expected


def test__same_class__modes__sequences_or_multisets():
    bases = torch.tensor([[1, 2, 3]])
    tokens = torch.tensor([[[2, 1, 3], [1, 2, 4], [4, 2, 1], [1, 2, 4]]])
    pairs = Pairs("any", tokens, tokens != bases[:, None])

    positional = pairs.same_class(bases, True)[0].int().tolist()
    equivariant = pairs.same_class(bases, False)[0].int().tolist()

    assert positional == [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 1],
        [0, 0, 0, 1, 0],
        [0, 0, 1, 0, 1],
    ]
    assert equivariant == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 1, 1],
        [0, 0, 1, 1, 1],
        [0, 0, 1, 1, 1],
    ]
