import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.tasks.masking import Masked, mask_tokens

MASK = 4


def run(
    lengths: list[int], seq_len: int, *, p: float = 0.15, seed: int = 0, special: bool = False
) -> tuple[np.ndarray, np.ndarray, Masked]:
    """Masks rows of random ids from 5 to 99; with `special`, about half are [UNK] = 1."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(5, 100, (len(lengths), seq_len))
    if special:
        ids[rng.random(ids.shape) < 0.5] = 1
    maskable = (np.arange(seq_len) < np.array(lengths)[:, None]) & (ids != 1)
    masked = mask_tokens(
        ids,
        maskable,
        np.array(lengths),
        probability=p,
        mask_id=MASK,
        random_ids=np.arange(5, 100),
        rng=rng,
    )
    return ids, maskable, masked


@given(
    lengths=st.lists(st.integers(0, 24), min_size=1, max_size=8),
    p=st.floats(0.01, 0.99),
    seed=st.integers(0, 1000),
    special=st.booleans(),
)
def test__mask_tokens__any_rows__counts_places_and_targets(
    lengths: list[int], p: float, seed: int, special: bool
) -> None:
    ids, maskable, masked = run(lengths, 24, p=p, seed=seed, special=special)
    rows, columns = np.divmod(masked.places, 24)
    assert np.all(np.diff(masked.places) > 0)
    assert np.all(maskable[rows, columns])
    assert masked.targets.tolist() == ids[rows, columns].tolist()
    for row, length in enumerate(lengths):
        available = int(maskable[row].sum())
        assert np.sum(rows == row) == min(available, max(1, round(p * length)))
    changed = masked.inputs != ids
    assert set(np.flatnonzero(changed)) <= set(masked.places)


def test__mask_tokens__many_draws__eighty_ten_ten() -> None:
    _, _, masked = run([64] * 4000, 64)
    seen = masked.inputs.reshape(-1)[masked.places]
    n = len(seen)
    assert n == 4000 * 10
    shown = np.mean(seen == masked.targets)
    hidden = np.mean(seen == MASK)
    # One standard deviation of a share of 40,000 is at most 0.002.
    assert hidden == pytest.approx(0.8, abs=0.01)
    # A random token is the right one in 1 of 95 cases.
    assert shown == pytest.approx(0.1 + 0.1 / 95, abs=0.01)
    drawn = seen[(seen != MASK) & (seen != masked.targets)]
    assert set(drawn) == set(range(5, 100))


def test__mask_tokens__many_draws__every_place_equally_often() -> None:
    _, _, masked = run([64] * 4000, 64)
    counts = np.bincount(masked.places % 64, minlength=64)
    # Expected 625 with a standard deviation of 23.
    np.testing.assert_allclose(counts, 625, atol=5 * 23)


def test__mask_tokens__nothing_maskable__no_targets_and_nothing_changed() -> None:
    ids, _, masked = run([0, 0], 8)
    assert len(masked.places) == 0
    assert masked.inputs.tolist() == ids.tolist()
